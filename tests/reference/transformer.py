"""Writes transformer.json: PyTorch's Transformer modules in float64, outputs and all gradients, and two trainings.

Weights and inputs of the cases are cos of the element's position, which the tests compute as well. The trainings start
from PyTorch's own first values, rounded to 6 digits.
"""

import json
import pathlib

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.backends.mha.set_fastpath_enabled(False)
torch.manual_seed(0)


def fill(shape, start, scale=1.0):
    """Elements scale cos(start + 0.7 i) in row-major order."""
    count = int(torch.tensor(shape).prod())
    return (scale * torch.cos(start + 0.7 * torch.arange(count))).reshape(shape)


def short(tensor):
    """13 digits are enough for a comparison to 1e-10."""
    return [float(f"{x:.13g}") for x in tensor.flatten().tolist()]


def forbidden(lengths, size):
    """What PyTorch calls a key padding mask: true where a key is padding."""
    return None if lengths is None else torch.arange(size) >= torch.tensor(lengths).unsqueeze(1)


def causal(size):
    return torch.triu(torch.ones(size, size, dtype=torch.bool), 1)


WIDTH, HEADS, HIDDEN, BATCH, SOURCE, TARGET = 4, 2, 6, 2, 5, 3
cases = []


def case(name, kind, activation="relu", norm_first=False, bias=True, source_lengths=None, target_lengths=None,
         causal_encoder=False, pairs=False):
    """pairs: a mask with a row for each query, the first (q + 2 b + 1) mod K + 1 keys."""
    settings = {"dim_feedforward": HIDDEN, "dropout": 0.0, "activation": activation, "norm_first": norm_first,
                "bias": bias, "batch_first": True}
    if kind == "encoder layer":
        module = nn.TransformerEncoderLayer(WIDTH, HEADS, **settings)
    elif kind == "decoder layer":
        module = nn.TransformerDecoderLayer(WIDTH, HEADS, **settings)
    else:
        module = nn.Transformer(WIDTH, HEADS, 2, 2, **settings)
    names = [n for n, _ in module.named_parameters()]
    for i, parameter in enumerate(module.parameters()):
        parameter.data = fill(parameter.shape, i + 1.0, 0.5)
    source = fill((BATCH, SOURCE, WIDTH), 10.0).requires_grad_()
    target = fill((BATCH, TARGET, WIDTH), 20.0).requires_grad_()

    def pair_mask(queries):
        if not pairs:
            return None
        lengths = (torch.arange(queries) + 2 * torch.arange(BATCH).unsqueeze(1) + 1) % SOURCE + 1
        return (torch.arange(SOURCE) >= lengths.unsqueeze(2)).repeat_interleave(HEADS, 0)

    source_padding, target_padding = forbidden(source_lengths, SOURCE), forbidden(target_lengths, TARGET)
    if kind == "encoder layer":
        inputs = [source]
        mask = causal(SOURCE) if causal_encoder else pair_mask(SOURCE)
        output = module(source, src_mask=mask, src_key_padding_mask=source_padding)
    elif kind == "decoder layer":
        inputs = [target, source]
        output = module(target, source, tgt_mask=causal(TARGET), memory_mask=pair_mask(TARGET),
                        tgt_key_padding_mask=target_padding, memory_key_padding_mask=source_padding)
    else:
        inputs = [source, target]
        output = module(source, target, tgt_mask=causal(TARGET), src_key_padding_mask=source_padding,
                        tgt_key_padding_mask=target_padding, memory_key_padding_mask=source_padding)
    grads = torch.autograd.grad(output, inputs + list(module.parameters()), fill(output.shape, 5.0))
    cases.append({
        "name": name, "kind": kind, "activation": activation, "norm_first": norm_first, "bias": bias,
        "source_lengths": source_lengths, "target_lengths": target_lengths, "causal": causal_encoder, "pairs": pairs,
        "parameters": names, "output": short(output), "gradients": [short(g) for g in grads],
    })


for norm_first in (False, True):
    order = "pre-norm" if norm_first else "post-norm"
    case(f"encoder layer, {order}", "encoder layer", norm_first=norm_first)
    case(f"encoder layer, {order}, gelu, no bias, padded", "encoder layer", "gelu", norm_first, False, [5, 2])
    case(f"encoder layer, {order}, causal, padded", "encoder layer", norm_first=norm_first, causal_encoder=True,
         source_lengths=[3, 5])
    case(f"encoder layer, {order}, a mask for each query", "encoder layer", "gelu", norm_first, pairs=True)
    case(f"decoder layer, {order}", "decoder layer", norm_first=norm_first)
    case(f"decoder layer, {order}, gelu, no bias, padded", "decoder layer", "gelu", norm_first, False, [5, 2], [1, 3])
    case(f"decoder layer, {order}, a mask for each query", "decoder layer", norm_first=norm_first, pairs=True)
    case(f"Transformer, {order}", "Transformer", norm_first=norm_first)
    case(f"Transformer, {order}, gelu, padded", "Transformer", "gelu", norm_first, True, [5, 2], [1, 3])


# ---- training -------------------------------------------------------------------------------------------------------

STEPS, VOCABULARY, LENGTH, BATCHES = 50, 11, 6, 5


def start_values(module):
    """The parameters, rounded in place to what is written."""
    for parameter in module.parameters():
        parameter.data = torch.round(parameter.data, decimals=6)
    return {n: [round(x, 6) for x in p.flatten().tolist()] for n, p in module.named_parameters()}


class Translator(nn.Module):
    """Token 0 is padding. Positions are learned."""

    def __init__(self, width):
        super().__init__()
        self.source_embedding = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.target_embedding = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.positions = nn.Embedding(LENGTH, width)
        self.transformer = nn.Transformer(width, 2, 2, 2, 2 * width, 0.0, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, source, target):
        padding = source == 0
        y = self.transformer(self.source_embedding(source) + self.positions.weight,
                             self.target_embedding(target) + self.positions.weight, tgt_mask=causal(LENGTH),
                             src_key_padding_mask=padding, memory_key_padding_mask=padding)
        return self.head(y)


class LanguageModel(nn.Module):
    def __init__(self, width, tied):
        super().__init__()
        self.token_embedding = nn.Embedding(VOCABULARY, width)
        self.position_embedding = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.ModuleList([layer, nn.TransformerEncoderLayer(width, 2, 4 * width, 0.0, "gelu",
                                                                       batch_first=True, norm_first=True)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding.weight
        for layer in self.layers:
            x = layer(x, src_mask=causal(LENGTH))
        return self.head(self.norm(x))


def train_translator():
    """The target is the source backwards, behind token 1."""
    model = Translator(8)
    content = {"start": start_values(model), "sources": [], "targets": [], "losses": [], "norms": []}
    for _ in range(BATCHES):
        source = torch.zeros(4, LENGTH, dtype=torch.long)
        target = torch.zeros(4, LENGTH + 1, dtype=torch.long)
        target[:, 0] = 1
        for i in range(4):
            length = int(torch.randint(2, LENGTH + 1, ()))
            source[i, :length] = torch.randint(2, VOCABULARY, (length,))
            target[i, 1:length + 1] = source[i, :length].flip(0)
        content["sources"].append(source.flatten().tolist())
        content["targets"].append(target.flatten().tolist())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        source = torch.tensor(content["sources"][step % BATCHES]).reshape(4, LENGTH)
        target = torch.tensor(content["targets"][step % BATCHES]).reshape(4, LENGTH + 1)
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        # clip_grad_norm_ divides by the norm + 1e-6, and so does not clip to 1.
        norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
        for parameter in model.parameters():
            parameter.grad *= min(1.0, 1 / norm)
        optimizer.step()
        content["losses"].append(loss.item())
        content["norms"].append(norm.item())
    return content


def train_language_model(tied):
    model = LanguageModel(8, tied)
    content = {"start": start_values(model), "tokens": [], "losses": []}
    content["tokens"] = [torch.randint(0, VOCABULARY, (4, LENGTH + 1)).flatten().tolist() for _ in range(BATCHES)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / 10, 1.0, 9)  # (step + 1) / 10
    for step in range(STEPS):
        tokens = torch.tensor(content["tokens"][step % BATCHES]).reshape(4, LENGTH + 1)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        content["losses"].append(loss.item())
    return content


content = {"cases": cases, "translator": train_translator(), "language_model": train_language_model(False),
           "tied_language_model": train_language_model(True)}
for name in ("translator", "language_model", "tied_language_model"):
    print(name, content[name]["losses"][0], content[name]["losses"][-1])
print("clipped", sum(n > 1 for n in content["translator"]["norms"]), "of", STEPS)
path = pathlib.Path(__file__).with_name("transformer.json")
path.write_text(json.dumps(content, separators=(",", ":")) + "\n")
print(len(cases), "cases,", path.stat().st_size // 1000, "kB")
