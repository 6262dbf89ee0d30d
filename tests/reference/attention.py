"""Writes attention.json: PyTorch's nn.MultiheadAttention in float64, outputs and all gradients, and 50 steps of SGD.

Nothing but results is written: weights and inputs are cos of the element's position, which the tests compute as well.
"""

import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)
torch.backends.mha.set_fastpath_enabled(False)


def fill(shape, start, scale=1.0):
    """Elements scale cos(start + 0.7 i) in row-major order."""
    count = int(torch.tensor(shape).prod())
    return (scale * torch.cos(start + 0.7 * torch.arange(count))).reshape(shape)


def make(size, heads, **settings):
    module = torch.nn.MultiheadAttention(size, heads, batch_first=True, **settings)
    names = ["in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias"]
    parameters = [(n, getattr(module, n)) for n in names if getattr(module, n) is not None]
    parameters += [("out_proj." + n, p) for n, p in module.out_proj.named_parameters()]
    for i, (_, parameter) in enumerate(parameters):
        parameter.data = fill(parameter.shape, i + 1.0, 0.5)
    return module, parameters


def allowed_lengths(lengths, keys):
    return torch.arange(keys) < torch.tensor(lengths).unsqueeze(1)


cases = []


def case(name, size, heads, batch, queries, keys, key_size=0, value_size=0, bias=True, lengths=None, causal=False,
         self_attention=False):
    module, parameters = make(size, heads, bias=bias, kdim=key_size or None, vdim=value_size or None)
    shapes = [(batch, queries, size), (batch, keys, key_size or size), (batch, keys, value_size or size)]
    inputs = [fill(s, 10.0 * (i + 1)).requires_grad_() for i, s in enumerate(shapes)]
    if self_attention:
        inputs = inputs[:1]
    forbidden = torch.triu(torch.ones(queries, keys, dtype=torch.bool), 1) if causal else None
    padded = None if lengths is None else ~allowed_lengths(lengths, keys)
    q, k, v = inputs * 3 if self_attention else inputs
    output, weights = module(q, k, v, key_padding_mask=padded, attn_mask=forbidden, average_attn_weights=False)
    leaves = inputs + [p for _, p in parameters]
    grads = torch.autograd.grad(output, leaves, fill(output.shape, 5.0))
    cases.append({
        "name": name, "size": size, "heads": heads, "batch": batch, "queries": queries, "keys": keys,
        "key_size": key_size, "value_size": value_size, "bias": bias, "lengths": lengths, "causal": causal,
        "self": self_attention, "parameters": [n for n, _ in parameters],
        "output": output.flatten().tolist(), "weights": weights.flatten().tolist(),
        "gradients": [g.flatten().tolist() for g in grads],
    })


case("self", 6, 2, 2, 5, 5, self_attention=True)
case("self, causal, padded", 6, 3, 2, 5, 5, lengths=[5, 2], causal=True, self_attention=True)
case("self, no bias", 5, 5, 2, 4, 4, bias=False, self_attention=True)
case("cross", 6, 2, 2, 3, 7)
case("cross, padded", 8, 4, 3, 3, 5, lengths=[1, 5, 3])
case("cross, other sizes", 6, 3, 2, 3, 4, key_size=5, value_size=7)
case("cross, other sizes, no bias, padded", 4, 1, 2, 5, 3, key_size=3, value_size=2, bias=False, lengths=[2, 3])
case("cross, only the keys' size differs", 4, 2, 1, 2, 3, key_size=9)
case("one head, one key", 3, 1, 1, 2, 1)
case("causal, more queries than a block", 4, 2, 1, 70, 70, causal=True, self_attention=True)

# Training: the output is to be the input, shifted by one position.
module, parameters = make(8, 2)
x = fill((4, 6, 8), 3.0)
target = torch.roll(x, 1, dims=1)
padded = ~allowed_lengths([6, 3, 5, 4], 6)
optimizer = torch.optim.SGD([p for _, p in parameters], lr=0.2)
losses = []
for step in range(50):
    loss = ((module(x, x, x, key_padding_mask=padded, need_weights=False)[0] - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("training", losses[0], losses[-1])

content = {"cases": cases, "training": {"losses": losses, "after": [p.flatten().tolist() for _, p in parameters]}}
path = pathlib.Path(__file__).with_name("attention.json")
path.write_text(json.dumps(content) + "\n")
print(len(cases), "cases,", path.stat().st_size // 1000, "kB")
