"""Writes adam.json: PyTorch's Adam and AdamW in float64, five steps from given gradients, for each choice of settings."""

import json
import pathlib

import torch

torch.manual_seed(0)
cases = []
for name, settings in [
    ("Adam", {}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": [0.5, 0.7], "eps": 0.01}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.3}),
    ("Adam", {"lr": 0.05, "betas": [0.0, 0.0]}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.0}),
    ("AdamW", {"lr": 0.05, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.3}),
]:
    p = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    optimizer = getattr(torch.optim, name)([p], **settings)
    case = {
        "name": name,
        "settings": settings,
        "start": p.detach().flatten().tolist(),
        "gradients": [],
        "values": [],
    }
    for step in range(5):
        # A step without a gradient leaves the parameter, its means and its count of steps alone.
        p.grad = None if step == 2 else torch.randn(2, 3, dtype=torch.float64)
        case["gradients"].append(None if p.grad is None else p.grad.flatten().tolist())
        optimizer.step()
        case["values"].append(p.detach().flatten().tolist())
    cases.append(case)

pathlib.Path(__file__).with_name("adam.json").write_text(json.dumps(cases) + "\n")
