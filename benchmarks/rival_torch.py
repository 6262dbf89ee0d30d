"""PyTorch's side of the benchmark, eager: bench_train's workloads, from the same formulas and shapes."""

import math

import torch
import torch.nn.functional as F

import rival


def leave_one_out(x):
    """(n) -> (n,n-1): row i is x without x[i]."""
    n = len(x)
    return x.repeat(n, 1)[~torch.eye(n, dtype=torch.bool)].reshape(n, n - 1)


def nw_step():
    x = torch.sort(torch.rand(50) * 5).values
    y = 2 * torch.sin(x) + x**0.8 + torch.randn(50) * 0.5
    keys, values = leave_one_out(x), leave_one_out(y)
    w = torch.nn.Parameter(torch.rand(49))
    optimizer = torch.optim.SGD([w], lr=0.5)

    def call():
        optimizer.zero_grad()
        queries = x.repeat_interleave(49).reshape(50, 49)
        attention = F.softmax(-(((queries - keys) * w) ** 2) / 2, dim=1)
        prediction = torch.bmm(attention.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)
        loss = F.mse_loss(prediction, y, reduction="none").sum()
        loss.backward()
        optimizer.step()
        return loss

    return call


def scalar_ops(ops):
    start = torch.tensor(1.0, requires_grad=True)

    def call():
        start.grad = None
        z = start
        for _ in range(ops // 2):
            z = z * 0.999 + 0.001
        z.backward()
        return z

    return call


def attention(batch, length, width, heads):
    qkv = torch.nn.Linear(width, 3 * width, bias=False)
    out = torch.nn.Linear(width, width, bias=False)
    x = torch.randn(batch, length, width, requires_grad=True)
    lengths = torch.tensor([(2 * i + 1) * length // (2 * batch) for i in range(batch)])
    operands = [qkv.weight, out.weight, x]

    def call():
        for operand in operands:
            operand.grad = None
        mask = (torch.arange(length) < lengths[:, None])[:, None, None, :].expand(batch, 1, length, length)
        q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = out(y.transpose(1, 2).reshape(batch, length, width)).sum()
        y.backward()
        return y

    return call


def dot_product_attention(batch, length, width, heads):
    return forward_and_backward(F.scaled_dot_product_attention, *[(batch, heads, length, width // heads)] * 3)


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(width, bias=False)
        self.norm2 = torch.nn.LayerNorm(width, bias=False)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.linear1 = torch.nn.Linear(width, 4 * width, bias=False)
        self.linear2 = torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (p.unflatten(2, (self.heads, -1)).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class LanguageModel(torch.nn.Module):
    def __init__(self, length, layers, heads, width):
        super().__init__()
        self.tokens = torch.nn.Embedding(65, width)
        self.positions = torch.nn.Embedding(length, width)
        self.layers = torch.nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(width, bias=False)
        for name, p in self.named_parameters():
            if p.ndim > 1:
                ends_part = name.endswith(("out.weight", "linear2.weight"))
                torch.nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if ends_part else 0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.tokens.weight)  # the head is the embedding


def language_model_step(batch, length, layers, heads, width):
    net = LanguageModel(length, layers, heads, width)
    parameters = list(net.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1]},
        {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    seen, following = torch.randint(65, (2, batch, length))

    def call():
        loss = F.cross_entropy(net(seen).flatten(0, 1), following.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return call


def language_model_forward(batch, length, layers, heads, width):
    net = LanguageModel(length, layers, heads, width).eval()
    seen = torch.randint(65, (batch, length))

    @torch.inference_mode()
    def call():
        return net(seen)

    return call


def forward_and_backward(f, *shapes):
    """f of operands of these shapes, the first one being y's too, then backward from a gradient of ones."""
    operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
    dy = torch.ones(shapes[0])

    def call():
        for operand in operands:
            operand.grad = None
        y = f(*operands)
        y.backward(dy)
        return y

    return call


def product():
    a, b = torch.randn(2, 1024, 1024)

    @torch.inference_mode()
    def call():
        return a @ b

    return call


WORKLOADS = {
    "nw_step": nw_step,
    **rival.sized_rows(scalar_ops, attention, language_model_step, language_model_forward),
    "softmax_4096x512": lambda: forward_and_backward(lambda x: F.softmax(x, 1), (4096, 512)),
    "layernorm_4096x512": lambda: forward_and_backward(
        lambda x, w, b: F.layer_norm(x, (512,), w, b), (4096, 512), (512,), (512,)
    ),
    "gelu_1M": lambda: forward_and_backward(F.gelu, (1 << 20,)),
    "add_bcast_4096x512": lambda: forward_and_backward(torch.add, (4096, 512), (512,)),
    "linear_2048x512x512": lambda: forward_and_backward(F.linear, (2048, 512), (512, 512)),
    "bmm_64x64x64x64": lambda: forward_and_backward(torch.bmm, (64, 64, 64), (64, 64, 64)),
    "gemm_1024": product,
    "attention": dot_product_attention,
    "gpt": language_model_step,
}

if __name__ == "__main__":
    options = rival.parse(WORKLOADS, "PyTorch (eager)", torch.__version__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rival.time_all(WORKLOADS, options, wait=lambda result: None)
