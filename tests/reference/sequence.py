"""Writes sequence.json: PyTorch's GRU and Conv1d in float64, outputs and gradients.

Inputs, weights and dy are filled by a formula, so that only answers need to be kept: element i of array number `which`
is cos(1 + i + 10 which) scale.
"""

import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)


def filled(which, shape, scale=1.0):
    count = torch.Size(shape).numel()
    return (torch.cos(1.0 + torch.arange(count) + 10.0 * which) * scale).reshape(shape)


def run(module, inputs, call):
    """Answers of call(module, inputs): outputs, and the gradients of sum(outputs * dy) for inputs and parameters."""
    with torch.no_grad():
        for which, parameter in enumerate(module.parameters()):
            parameter.copy_(filled(which, parameter.shape, 0.5))
    outputs = call(module, inputs)
    dys = [filled(20 + which, y.shape) for which, y in enumerate(outputs)]
    torch.autograd.backward(outputs, dys)
    leaves = [("input" + str(i), x) for i, x in enumerate(inputs)] + list(module.named_parameters())
    return {
        "input shapes": [list(x.shape) for x in inputs],
        "outputs": [y.flatten().tolist() for y in outputs],
        "gradients": {name: leaf.grad.flatten().tolist() for name, leaf in leaves},
    }


gru, conv = [], []
for batch, steps, inputs, hidden, with_state in [(2, 5, 3, 4, True), (1, 1, 1, 1, True), (3, 7, 2, 3, False)]:
    shapes = [(batch, steps, inputs)] + ([(batch, hidden)] if with_state else [])
    leaves = [filled(10 + i, shape).requires_grad_() for i, shape in enumerate(shapes)]

    def call(module, xs):
        outputs, last = module(xs[0], xs[1][None] if len(xs) > 1 else None)
        return [outputs, last[0]]

    answers = run(torch.nn.GRU(inputs, hidden, batch_first=True), leaves, call)
    gru.append({"inputs": inputs, "hidden": hidden} | answers)

for batch, channels, length, outputs, kernel, stride, padding, bias in [
    (2, 3, 7, 4, 3, 1, 1, True), (1, 2, 9, 2, 4, 2, 0, True), (3, 1, 5, 2, 1, 1, 0, False), (2, 2, 4, 3, 3, 3, 2, True)
]:
    x = filled(10, (batch, channels, length)).requires_grad_()
    module = torch.nn.Conv1d(channels, outputs, kernel, stride, padding, bias=bias)
    settings = {"channels": channels, "filters": outputs, "kernel": kernel, "stride": stride, "padding": padding}
    conv.append(settings | {"bias": bias} | run(module, [x], lambda m, xs: [m(xs[0])]))

pathlib.Path(__file__).with_name("sequence.json").write_text(json.dumps({"gru": gru, "conv1d": conv}) + "\n")
