"""Writes cases.jsonl and cases_losses.jsonl: ops with random and edge inputs, and PyTorch's answers in float64, first
and second order.

One case is one line: op, id, attrs, inputs, output, grad_output (dy), grads (of sum(output * dy) for each f64 input),
directions (r) and second (of the sum of grads * r for each f64 input).
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
INF, NAN = math.inf, math.nan
lines = []
counts = {}


def axes_of(x, axis):
    return tuple(axis) if axis else tuple(range(x.dim()))

def allowed(lengths, keys):
    mask = torch.arange(keys) < lengths.unsqueeze(-1)
    return mask if mask.dim() == 3 else mask.unsqueeze(1)


def masked_softmax(scores, mask):
    """Softmax among the kept scores; a row of none is zeros, as in PyTorch's fused attention, not NaN."""
    mask = mask.broadcast_to(scores.shape)
    nothing = ~mask.any(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(~mask & ~nothing, -INF), -1).masked_fill(nothing, 0.0)


def attention(q, k, v, mask, is_causal):
    """Composed, since PyTorch's fused attention has no second derivative."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None and mask.dtype != torch.bool:
        scores = scores + mask
    keep = mask if mask is not None and mask.dtype == torch.bool else torch.ones((), dtype=torch.bool)
    if is_causal:
        keep = keep & torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return masked_softmax(scores, keep) @ v


OPS = {
    "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "square": torch.square, "sin": torch.sin,
    "cos": torch.cos, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "abs": torch.abs, "erf": torch.erf, "log1p": torch.log1p,
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)), "silu": F.silu,
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "maximum": torch.maximum, "minimum": torch.minimum,
    "clamp": lambda x, min, max: torch.clamp(x, min, max),
    "sum": lambda x, axis, keepdim: torch.sum(x, axes_of(x, axis), keepdim),
    "mean": lambda x, axis, keepdim: torch.mean(x, axes_of(x, axis), keepdim),
    "amax": lambda x, axis, keepdim: torch.amax(x, axes_of(x, axis), keepdim),
    "amin": lambda x, axis, keepdim: torch.amin(x, axes_of(x, axis), keepdim),
    "logsumexp": lambda x, axis, keepdim: torch.logsumexp(x, axes_of(x, axis), keepdim),
    "var": lambda x, axis, correction, keepdim: torch.var(x, axes_of(x, axis), correction=correction, keepdim=keepdim),
    "prod": lambda x, axis, keepdim: torch.prod(x, axis, keepdim),
    "softmax": lambda x, axis: torch.softmax(x, axis), "log_softmax": lambda x, axis: torch.log_softmax(x, axis),
    "cumsum": lambda x, axis: torch.cumsum(x, axis),
    "matmul": torch.matmul, "bmm": torch.bmm, "linear": F.linear,
    "conv1d": lambda x, weight, bias=None, *, stride, padding: F.conv1d(x, weight, bias, stride, padding),
    "reshape": lambda x, shape: x.reshape(shape), "permute": lambda x, axes: x.permute(axes),
    "transpose": lambda x, axis0, axis1: x.transpose(axis0, axis1), "unsqueeze": lambda x, axis: x.unsqueeze(axis),
    "squeeze": lambda x, axis: x.squeeze(axis), "broadcast_to": lambda x, shape: x.broadcast_to(shape),
    "repeat": lambda x, repeats: x.repeat(repeats),
    "repeat_interleave": lambda x, repeats, axis: x.repeat_interleave(repeats, axis),
    "concat": lambda *xs, axis: torch.concat(xs, axis), "stack": lambda *xs, axis: torch.stack(xs, axis),
    "slice": lambda x, axis, start, stop, step: x[(slice(None),) * (axis % x.dim()) + (slice(start, stop, step),)],
    "tril": lambda x, diagonal: torch.tril(x, diagonal),
    "index_select": lambda x, index, axis: x.index_select(axis, index),
    "gather": lambda x, index, axis: x.gather(axis, index),
    "masked_select": torch.masked_select, "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "masked_softmax": lambda x, lengths: masked_softmax(x, allowed(lengths, x.shape[-1])),
    "scaled_dot_product_attention": lambda q, k, v, mask=None, *, is_causal: attention(q, k, v, mask, is_causal),
    "where": torch.where, "mse_loss": lambda a, b, reduction: F.mse_loss(a, b, reduction=reduction),
    "l1_loss": lambda a, b, reduction: F.l1_loss(a, b, reduction=reduction),
    "smooth_l1_loss": lambda a, b, reduction, beta: F.smooth_l1_loss(a, b, reduction=reduction, beta=beta),
    "binary_cross_entropy_with_logits":
        lambda a, b, reduction: F.binary_cross_entropy_with_logits(a, b, reduction=reduction),
    "kl_div": lambda a, b, reduction: F.kl_div(a, b, reduction=reduction),
    "cross_entropy": F.cross_entropy, "nll_loss": F.nll_loss, "embedding": F.embedding,
    "layer_norm":
        lambda x, weight, bias=None, *, normalized_shape, eps: F.layer_norm(x, normalized_shape, weight, bias, eps),
    "rms_norm": lambda x, weight, eps: F.rms_norm(x, weight.shape, weight, eps),
}


def to_json(t, digits=12):
    if t.dtype == torch.float64:
        t = t.detach() + 0  # PyTorch's symbolic zeros have no elements to list
        words = [float(f"{v:.{digits}g}") if math.isfinite(v) else str(v) for v in t.flatten().tolist()]
        return {"dtype": "f64", "shape": list(t.shape), "data": words}
    return {"dtype": "bool" if t.dtype == torch.bool else "i64", "shape": list(t.shape), "data": t.flatten().tolist()}


def write(name):
    """The cases since the last file."""
    path = pathlib.Path(__file__).with_name(name)
    path.write_text("\n".join(lines) + "\n")
    print(f"{name}: {len(lines)} cases, {path.stat().st_size // 1000} kB")
    lines.clear()


def rounded(*shape, scale=1.0):
    """Random numbers with few digits, which keeps the file small."""
    return (torch.randn(shape) * scale * 64).round() / 64


def case(op, *inputs, second=True, **attrs):
    inputs = [torch.tensor(i) if not isinstance(i, torch.Tensor) else i for i in inputs]
    inputs = [i.detach().clone().requires_grad_(i.dtype == torch.float64) for i in inputs]
    leaves = [i for i in inputs if i.requires_grad]
    y = OPS[op](*inputs, **attrs)
    dy = rounded(*y.shape)
    grads = torch.autograd.grad(y, leaves, dy, create_graph=True, materialize_grads=True)
    record = {"op": op, "id": f"{op}-{counts.setdefault(op, 0)}", "attrs": attrs, "inputs": [to_json(i, 17) for i in inputs],
              "output": to_json(y), "grad_output": to_json(dy), "grads": [to_json(g) for g in grads]}
    counts[op] += 1
    if second:
        directions = [rounded(*g.shape) for g in grads]
        total = sum((g * r).sum() for g, r in zip(grads, directions))
        if total.requires_grad:
            seconds = torch.autograd.grad(total, leaves, materialize_grads=True)
        else:
            seconds = [torch.zeros_like(x) for x in leaves]
        record["directions"] = [to_json(r) for r in directions]
        record["second"] = [to_json(s) for s in seconds]
    lines.append(json.dumps(record, separators=(",", ":")))


# ---- pointwise: scalars, no elements, a long axis with a tail for SIMD, and edges of the domain -----------------------

everywhere = torch.tensor([-INF, -30.0, -1.0, -1e-9, -0.0, 0.0, 1e-9, 1.0, 30.0, INF, NAN])
for op in ["neg", "exp", "square", "abs", "sin", "cos", "tanh", "sigmoid", "softplus", "silu", "relu", "erf", "gelu",
           "gelu_tanh"]:
    case(op, rounded())
    case(op, rounded(0, 3))
    case(op, rounded(19, scale=3))
    case(op, rounded(2, 3, 4))
    case(op, everywhere[[1, 2, 3, 5, 6, 7, 8]], second=op != "abs")
    if op in ["neg", "exp", "square", "relu", "sigmoid", "tanh"]:
        case(op, everywhere, second=False)
for op in ["log", "sqrt"]:
    case(op, rounded(19).abs() + 0.1)
    case(op, rounded(0))
    case(op, rounded(3, 1, 2).exp())
    case(op, [1e-300, 1e-9, 1.0, 1e9, 1e300], second=False)
    case(op, [0.0, INF, NAN], second=False)
case("log1p", rounded(19).abs() - 0.5)
case("log1p", [1e-12, -1e-12, 0.0, -0.999, 1e9])
case("clamp", rounded(5, 7), min=-0.5, max=0.7)
case("clamp", [-0.5, 0.7, 0.0, 2.0, INF, -INF, NAN], min=-0.5, max=0.7)
case("clamp", rounded(0, 2), min=0.0, max=0.0)

# ---- arithmetic: every kind of broadcasting ----------------------------------------------------------------------------

pairs = [((), ()), ((), (3,)), ((2, 3), ()), ((3, 1), (1, 4)), ((3,), (2, 3)), ((2, 3), (2, 3)), ((0, 3), (1, 3)),
         ((1, 0), (4, 1)), ((2, 19), (19,)), ((2, 19), (2, 1)), ((2, 1, 3), (4, 1)), ((35,), (35,))]
for op in ["add", "sub", "mul", "div", "pow", "maximum", "minimum"]:
    for a, b in pairs:
        x, y = rounded(*a), rounded(*b)
        if op == "pow":
            x = x.abs() + 0.25
        if op == "div":
            y = y + torch.where(y < 0, -0.5, 0.5)
        case(op, x, y)
for op in ["maximum", "minimum"]:
    case(op, [1.0, 2.0, 5.0], [1.0, 3.0, 4.0])  # a tie
    case(op, [1.0, NAN, INF, -INF], [NAN, 1.0, 2.0, 2.0], second=False)
case("pow", [0.0, 0.0, 0.0, -3.0, -3.0, 2.0], [1.0, 2.0, 3.0, 2.0, 3.0, 0.0], second=False)
case("div", [1.0, 0.0, -1.0, INF], [0.0, 1.0, INF, 2.0], second=False)

# ---- reductions --------------------------------------------------------------------------------------------------------

for op in ["sum", "mean", "amax", "amin", "logsumexp", "var"]:
    extra = {"correction": 1} if op == "var" else {}
    for shape, axis, keepdim in [((4, 5), [], False), ((4, 5), [0], False), ((4, 5), [-1], True), ((3, 19), [1], False),
                                 ((19, 3), [0], True), ((2, 3, 4), [1], False), ((2, 3, 4), [2, 0], False),
                                 ((2, 3, 4, 2), [-1, 1], True), ((2, 1, 3), [1, 2], False), ((0, 3), [1], False)]:
        case(op, rounded(*shape), axis=axis, keepdim=keepdim, **extra)
    if op != "var":
        case(op, rounded(), axis=[], keepdim=False)
case("sum", rounded(0, 3), axis=[0], keepdim=False)
case("sum", [1.0, INF, NAN], axis=[0], keepdim=False)
case("sum", [1.0, INF, -INF], axis=[0], keepdim=True)
case("var", rounded(3, 4) + 1e4, axis=[1], correction=0, keepdim=True)
case("var", rounded(3, 5), axis=[0, 1], correction=2, keepdim=False)
for op in ["amax", "amin"]:
    case(op, [[1.0, 3.0, 3.0], [3.0, 1.0, 1.0]], axis=[1], keepdim=False)  # ties
    case(op, [[1.0, 3.0, 3.0], [3.0, 1.0, 1.0]], axis=[0, 1], keepdim=True)
    case(op, [[1.0, INF], [-INF, -INF]], axis=[1], keepdim=False)
case("logsumexp", [[1000.0, 1000.0], [-1000.0, 0.0], [-INF, 2.0]], axis=[1], keepdim=False)
for values in [[[2.0, 3.0, 4.0]], [[2.0, 0.0, 4.0]], [[0.0, 0.0, 4.0]], [[0.0, 0.0, 0.0]]]:
    case("prod", values, axis=1, keepdim=False)
    case("prod", values, axis=-1, keepdim=True)
for shape, axis in [((3, 4), 0), ((2, 3, 4), 1), ((2, 9), -1), ((0, 3), 1), ((0, 3), 0)]:
    case("prod", rounded(*shape), axis=axis, keepdim=False)

# ---- along one axis ----------------------------------------------------------------------------------------------------

for op in ["softmax", "log_softmax", "cumsum"]:
    for shape, axis in [((5,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 19), 1), ((19, 2), 0), ((2, 3, 4), 1), ((2, 1), 1),
                        ((0, 3), 1), ((3, 0), 1), ((2, 2, 3, 2), -2)]:
        case(op, rounded(*shape, scale=2), axis=axis)
for op in ["softmax", "log_softmax"]:
    case(op, [[1000.0, 0.0], [-1000.0, -1000.0], [0.0, 800.0]], axis=1)
case("softmax", [[-INF, 0.0, 1.0], [0.0, -INF, -INF]], axis=1)

# ---- products: vectors, matrices, batches that broadcast, no inner extent ----------------------------------------------

for a, b in [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
             ((2, 1, 2, 3), (4, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((2, 4, 2, 3), (3,)), ((3,), (2, 3, 2)), ((2, 0), (0, 3)),
             ((0, 3), (3, 2)), ((2, 0, 3), (3, 2)), ((1, 1), (1, 1)), ((9, 11), (11, 5)), ((2, 2, 0), (1, 0, 3))]:
    case("matmul", rounded(*a), rounded(*b))
for a, b in [((2, 3, 4), (2, 4, 5)), ((2, 1, 7), (2, 7, 1)), ((2, 2, 0), (2, 0, 3)), ((0, 2, 3), (0, 3, 2)),
             ((3, 1, 1), (3, 1, 1)), ((1, 9, 3), (1, 3, 9))]:
    case("bmm", rounded(*a), rounded(*b))
for x, out in [((3,), 2), ((4, 3), 2), ((2, 4, 3), 5), ((0, 3), 2), ((2, 2, 2, 3), 1), ((4, 17), 9)]:
    case("linear", rounded(*x), rounded(out, x[-1]), rounded(out))

# ---- shape -------------------------------------------------------------------------------------------------------------

for shape, to in [((2, 6), [3, 4]), ((2, 6), [-1]), ((2, 6), [3, -1, 2]), ((), [1, 1]), ((1,), []), ((0, 3), [3, 0])]:
    case("reshape", rounded(*shape), shape=to)
for shape, axes in [((2, 3), [1, 0]), ((2, 3, 4), [2, 0, 1]), ((2, 3, 4, 2), [0, 2, 1, 3]), ((2, 3, 4), [-1, 0, -2]),
                    ((0, 3), [1, 0]), ((11, 9), [1, 0]), ((4,), [0])]:
    case("permute", rounded(*shape), axes=axes)
for shape, a, b in [((2, 3), 0, 1), ((2, 3, 4), -1, -2), ((2, 3, 4), 0, 2), ((2, 3, 4), 1, 1), ((0, 2), 0, 1)]:
    case("transpose", rounded(*shape), axis0=a, axis1=b)
for shape, axis in [((3,), 0), ((3,), 1), ((3,), -1), ((2, 3), -3), ((), 0), ((0, 2), 1)]:
    case("unsqueeze", rounded(*shape), axis=axis)
for shape, axis in [((1, 3), 0), ((3, 1), -1), ((2, 1, 3), 1), ((1,), 0), ((0, 1), 1)]:
    case("squeeze", rounded(*shape), axis=axis)
for shape, to in [((), [2, 3]), ((3,), [2, 3]), ((2, 1), [2, 3]), ((1, 1), [4, 19]), ((2, 1, 3), [5, 2, 4, 3]),
                  ((1, 3), [0, 3]), ((3,), [3])]:
    case("broadcast_to", rounded(*shape), shape=to)
for shape, repeats in [((3,), [2]), ((2, 3), [1, 2]), ((2, 3), [2, 1]), ((2, 3, 4), [3, 2, 1, 1, 1]), ((2,), [2, 3]),
                       ((2, 3), [0, 1]), ((), [3]), ((2, 1), [2, 9])]:
    case("repeat", rounded(*shape), repeats=repeats)
for shape, repeats, axis in [((3,), 2, 0), ((2, 3), 3, 1), ((2, 3), 2, 0), ((2, 3), 2, None), ((2, 3, 2), 2, -2),
                             ((3,), 19, None), ((3,), 0, 0), ((0, 2), 3, 1)]:
    case("repeat_interleave", rounded(*shape), repeats=repeats, axis=axis)
for shapes, axis in [([(3,)], 0), ([(2,), (3,), (1,)], 0), ([(2, 3), (2, 1)], 1), ([(2, 3), (1, 3), (0, 3)], 0),
                     ([(2, 1, 2), (2, 4, 2)], -2)]:
    case("concat", *[rounded(*s) for s in shapes], axis=axis)
for shape, count, axis in [((3,), 2, 0), ((3,), 2, 1), ((2, 3), 3, -1), ((2, 3), 1, 1), ((), 4, 0), ((0,), 2, 0)]:
    case("stack", *[rounded(*shape) for _ in range(count)], axis=axis)
for shape, axis, start, stop, step in [((7,), 0, 1, 5, 1), ((7,), 0, 0, 7, 3), ((7,), 0, -3, 100, 1), ((7,), 0, 5, 2, 1),
                                       ((3, 5), 1, 1, 4, 2), ((3, 5), -1, -4, -1, 1), ((2, 4, 3), 1, 1, 3, 1),
                                       ((0, 3), 0, 0, 2, 1), ((3, 5), 0, 2, 3, 7)]:
    case("slice", rounded(*shape), axis=axis, start=start, stop=stop, step=step)
for shape, diagonal in [((3, 3), 0), ((3, 4), 1), ((4, 3), -1), ((2, 3, 3), 0), ((3, 3), -5), ((3, 3), 5), ((0, 3), 0)]:
    case("tril", rounded(*shape), diagonal=diagonal)

# ---- index and mask ----------------------------------------------------------------------------------------------------

for shape, axis, index in [((3,), 0, [0, 0, 2]), ((3, 4), 1, [3, 1, 1, 0, 3]), ((3, 4), 0, [2]), ((2, 3, 4), -2, [2, 2]),
                           ((3, 2), 0, []), ((3, 0), 0, [1, 1])]:
    case("index_select", rounded(*shape), torch.tensor(index, dtype=torch.int64), axis=axis)
for shape, index_shape, axis in [((3,), (5,), 0), ((3, 4), (3, 2), 1), ((3, 4), (2, 4), 0), ((3, 4), (2, 3), 0),
                                 ((2, 3, 4), (2, 5, 3), 1), ((3, 4), (0, 4), 0), ((3, 4), (3, 6), -1)]:
    case("gather", rounded(*shape), torch.randint(0, shape[axis], index_shape), axis=axis)
masks = [((3,), (3,)), ((2, 3), (3,)), ((3, 19), (1, 19)), ((2, 19), (19,)), ((2, 3, 4), (3, 1)), ((2, 3), (2, 1)),
         ((2, 2, 3, 5), (2, 1, 1, 5)), ((0, 3), (3,)), ((2, 3), ()), ((16, 8), (1, 8))]
for shape, mask_shape in masks:
    mask = torch.rand(mask_shape) < 0.5
    case("masked_fill", rounded(*shape), mask, value=-1.5)
    case("masked_select", rounded(*shape), mask)
    case("where", mask, rounded(*shape), rounded(*shape))
case("masked_fill", rounded(2, 3), torch.ones(3, dtype=torch.bool), value=0.0)
case("masked_select", rounded(2, 3), torch.zeros(3, dtype=torch.bool))
case("where", torch.rand(3, 1) < 0.5, rounded(1, 4), rounded())
case("where", torch.rand(2, 1, 1) < 0.5, rounded(3, 1), rounded(4))
case("where", torch.tensor([True, False, True]), [1.0, NAN, 2.0], [INF, 3.0, NAN])

# ---- losses ------------------------------------------------------------------------------------------------------------

for reduction in ["none", "mean", "sum"]:
    for shape in [(), (5,), (3, 4), (0,), (2, 19)]:
        case("mse_loss", rounded(*shape), rounded(*shape), reduction=reduction)

# ---- convolution: one channel, K = 1, stride above the kernel, kernel as long as the padded input, windows that read
# padding only, no batch ---------------------------------------------------------------------------------------------------

for x, out, kernel, stride, padding in [((1, 1, 4), 1, 2, 1, 0), ((2, 3, 7), 2, 3, 1, 1), ((2, 2, 9), 3, 3, 2, 0),
                                        ((1, 2, 5), 2, 1, 1, 0), ((2, 1, 6), 2, 1, 3, 2), ((1, 2, 3), 2, 5, 1, 1),
                                        ((2, 2, 2), 1, 2, 3, 4), ((1, 1, 1), 1, 1, 1, 0), ((0, 2, 5), 3, 3, 1, 1),
                                        ((1, 3, 19), 4, 4, 3, 2)]:
    case("conv1d", rounded(*x), rounded(out, x[1], kernel), rounded(out), stride=stride, padding=padding)
case("conv1d", rounded(2, 2, 5), rounded(3, 2, 2), stride=2, padding=1)

# ---- attention: rows without a key, one head, one key, no batch, masks that broadcast over each leading axis ------------

for shape, lengths in [((2, 3, 4), [1, 4]), ((2, 3, 4), [0, 2]), ((2, 2, 3), [[1, 3], [0, 2]]), ((1, 1, 1), [1]),
                       ((1, 1, 4), [0]), ((2, 1, 19), [17, 8]), ((3, 2, 1), [1, 0, 1]), ((0, 2, 3), [])]:
    case("masked_softmax", rounded(*shape, scale=2), torch.tensor(lengths, dtype=torch.int64))
case("masked_softmax", [[[-2e6, 5.0, 1e9]]], torch.tensor([1]))
for (b, h, q, k, d, v), mask in [((1, 1, 1, 1, 1, 1), None), ((2, 3, 4, 5, 3, 2), None), ((1, 2, 3, 1, 4, 3), None),
                                 ((2, 1, 2, 17, 1, 9), (2, 1, 1, 17)), ((2, 2, 3, 4, 2, 3), (2, 2, 3, 4)),
                                 ((2, 2, 3, 4, 2, 3), (2, 1, 1)), ((2, 2, 3, 4, 2, 3), (2, 1, 3, 1)),
                                 ((2, 2, 3, 4, 2, 3), (4,)), ((2, 2, 3, 4, 2, 3), ()), ((0, 2, 3, 4, 2, 3), (3, 4)),
                                 ((1, 1, 66, 3, 2, 1), (66, 1))]:
    for is_causal in [False, True]:
        qkv = rounded(b, h, q, d), rounded(b, h, k, d), rounded(b, h, k, v)
        if mask is None:
            case("scaled_dot_product_attention", *qkv, is_causal=is_causal)
            continue
        case("scaled_dot_product_attention", *qkv, torch.rand(mask) < 0.5, is_causal=is_causal)
        case("scaled_dot_product_attention", *qkv, rounded(*mask), is_causal=is_causal)

write("cases.jsonl")

# ---- normalisation: one number a row, no rows, several axes, a large mean, equal numbers -------------------------------

for shape, normalized in [((4,), (4,)), ((3, 5), (5,)), ((3, 1), (1,)), ((2, 3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4)),
                          ((2, 2, 19), (19,)), ((0, 3), (3,)), ((2, 1, 3, 2), (3, 2)), ((70, 3), (3,)), ((2, 33), (33,))]:
    for eps in [1e-5, 1e-2]:
        case("layer_norm", rounded(*shape), rounded(*normalized), rounded(*normalized), normalized_shape=normalized,
             eps=eps)
        case("rms_norm", rounded(*shape), rounded(*normalized), eps=eps)
case("layer_norm", rounded(2, 5), rounded(5), normalized_shape=[5], eps=1e-5)
case("layer_norm", rounded(3, 6) + 4096, rounded(6), rounded(6), normalized_shape=[6], eps=1e-5, second=False)
case("layer_norm", torch.full((2, 4), 3.0), rounded(4), rounded(4), normalized_shape=[4], eps=1e-5)
case("rms_norm", torch.zeros(2, 4), rounded(4), eps=1e-5)
case("layer_norm", [[1.0, NAN, 2.0], [1.0, 2.0, 4.0]], rounded(3), rounded(3), normalized_shape=[3], eps=1e-5,
     second=False)

# ---- embedding ---------------------------------------------------------------------------------------------------------

for shape, rows, width in [((), 3, 2), ((4,), 3, 2), ((2, 3), 5, 19), ((2, 1, 2), 1, 3), ((0,), 2, 3), ((3, 0), 2, 3),
                           ((9,), 2, 1)]:
    case("embedding", torch.randint(0, rows, shape), rounded(rows, width))

# ---- losses of numbers, away from their kinks --------------------------------------------------------------------------

for reduction in ["none", "mean", "sum"]:
    for shape in [(), (5,), (3, 4), (0,), (2, 19), (2, 1, 3)]:
        case("l1_loss", rounded(*shape), rounded(*shape) + 1 / 128, reduction=reduction)
        case("binary_cross_entropy_with_logits", rounded(*shape, scale=3), torch.rand(shape), reduction=reduction)
        for beta in [0.5, 1.0, 2.0]:
            case("smooth_l1_loss", rounded(*shape, scale=2), rounded(*shape) + 1 / 128, reduction=reduction, beta=beta)
    case("binary_cross_entropy_with_logits", [500.0, -500.0, 40.0, -40.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0],
         reduction=reduction)
    case("smooth_l1_loss", [1e9, -1e9, 0.25], [0.0, 0.0, 0.5], reduction=reduction, beta=1.0)
for reduction in ["none", "mean", "sum", "batchmean"]:
    for shape in [(5,), (3, 4), (2, 19), (2, 1, 3)]:
        case("kl_div", torch.log_softmax(rounded(*shape), -1), torch.softmax(rounded(*shape), -1), reduction=reduction)

# ---- losses of classes: labels that do not count, smoothing, further axes; the mean over no label is NaN there and 0
# here, so it is not among them ------------------------------------------------------------------------------------------

for reduction in ["none", "mean", "sum"]:
    for shape in [(3,), (2, 3), (5, 1), (4, 19), (2, 3, 4), (2, 5, 2, 3), (3, 33)]:
        classes = shape[0] if len(shape) == 1 else shape[1]
        labels = torch.randint(0, classes, shape[:1] * (len(shape) > 1) + shape[2:])
        for smoothing in [0.0, 0.1, 1.0]:
            case("cross_entropy", rounded(*shape, scale=2), labels, reduction=reduction, label_smoothing=smoothing)
        case("nll_loss", rounded(*shape), labels, reduction=reduction)
        if len(shape) > 1:
            some = labels.clone()
            some.flatten()[1::2] = -100
            case("cross_entropy", rounded(*shape), some, reduction=reduction, label_smoothing=0.3, ignore_index=-100)
            case("cross_entropy", rounded(*shape), labels, reduction="sum", ignore_index=0)
            case("nll_loss", rounded(*shape), some, reduction=reduction, ignore_index=-100)
    case("cross_entropy", [[500.0, 0.0, -500.0], [500.0, 0.0, -500.0]], torch.tensor([0, 2]), reduction=reduction)
case("cross_entropy", rounded(0, 3), torch.zeros(0, dtype=torch.int64), reduction="sum")
case("cross_entropy", rounded(2, 3), torch.tensor([-100, -100]), reduction="none", label_smoothing=0.1)

write("cases_losses.jsonl")
