"""Writes sgd.json: PyTorch's SGD in float64, five steps from given gradients, for each choice of settings."""

import json
import pathlib

import torch

torch.manual_seed(0)
cases = []
for settings in [
    {"lr": 0.5},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.4},
    {"lr": 0.1, "momentum": 0.8, "nesterov": True},
    {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1},
    {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
]:
    p = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([p], **settings)
    case = {"settings": settings, "start": p.detach().flatten().tolist(), "gradients": [], "values": []}
    for step in range(5):
        # A step without a gradient leaves the parameter and its momentum alone.
        p.grad = None if step == 2 else torch.randn(2, 3, dtype=torch.float64)
        case["gradients"].append(None if p.grad is None else p.grad.flatten().tolist())
        optimizer.step()
        case["values"].append(p.detach().flatten().tolist())
    cases.append(case)

pathlib.Path(__file__).with_name("sgd.json").write_text(json.dumps(cases) + "\n")
