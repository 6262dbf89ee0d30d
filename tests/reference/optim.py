"""Writes optim.json: PyTorch's RMSprop, training with groups, schedules and clipping, and schedules' rates, in float64."""

import json
import pathlib

import torch
from torch.optim import lr_scheduler as lrs

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)


def flat(tensor):
    return tensor.detach().flatten().tolist()


def rmsprop():
    cases = []
    for settings in [
        {},
        {"lr": 0.1, "alpha": 0.8, "eps": 0.01},
        {"lr": 0.05, "weight_decay": 0.3},
        {"lr": 0.05, "momentum": 0.9},
        {"lr": 0.05, "centered": True},
        {"lr": 0.02, "alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1},
    ]:
        p = torch.randn(2, 3, requires_grad=True)
        optimizer = torch.optim.RMSprop([p], **settings)
        case = {"settings": settings, "start": flat(p), "gradients": [], "values": []}
        for step in range(10):
            # A step without a gradient leaves the parameter and what is remembered of it alone.
            p.grad = None if step == 2 else torch.randn(2, 3)
            case["gradients"].append(None if p.grad is None else flat(p.grad))
            optimizer.step()
            case["values"].append(flat(p))
        cases.append(case)
    return cases


def transformer(width, warmup):
    return lambda s: width**-0.5 * min((s + 1) ** -0.5, (s + 1) * warmup**-1.5)


def schedules():
    """The rates of a base rate of 0.5 at the first steps."""
    makers = {
        "step": lambda o: lrs.StepLR(o, 3, 0.1),
        "multistep": lambda o: lrs.MultiStepLR(o, [2, 3, 7], 0.3),
        "exponential": lambda o: lrs.ExponentialLR(o, 0.9),
        "cosine": lambda o: lrs.CosineAnnealingLR(o, 12, eta_min=0.05),
        "linear": lambda o: lrs.LinearLR(o, 0.25, 0.75, 8),
        "warmup": lambda o: lrs.LinearLR(o, 0.2, 1.0, 4),
        "transformer": lambda o: lrs.LambdaLR(o, transformer(16, 5)),
        "user": lambda o: lrs.LambdaLR(o, lambda s: 1 / (1 + s)),
        "sequence": lambda o: lrs.SequentialLR(
            o, [lrs.LinearLR(o, 0.25, 1.0, 3), lrs.CosineAnnealingLR(o, 9), lrs.ConstantLR(o, 0.1, 100)], [4, 9]
        ),
        "product": lambda o: lrs.ChainedScheduler([lrs.LinearLR(o, 0.25, 1.0, 3), lrs.ExponentialLR(o, 0.8)]),
    }
    rates = {}
    for name, make in makers.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
        scheduler = make(optimizer)
        rates[name] = []
        for _ in range(12):
            rates[name].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    return rates


def clip(parameters, most):
    """Clipping as the D2L book writes it: without PyTorch's 1e-6."""
    norm = torch.sqrt(sum((p.grad**2).sum() for p in parameters))
    if norm > most:
        for p in parameters:
            p.grad *= most / norm
    return norm.item()


def training():
    """Ten steps of a small net whose biases have another rate and no weight decay; one weight is tied."""
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    start = {"w": torch.randn(3, 3), "b1": torch.randn(3), "b2": torch.randn(3)}
    cases = {"x": flat(x), "y": flat(y), "start": {name: flat(value) for name, value in start.items()}, "runs": []}
    for kind, settings in [
        ("SGD", {"lr": 0.3, "momentum": 0.9, "weight_decay": 0.05}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.05}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
        ("RMSprop", {"lr": 0.02, "momentum": 0.5, "weight_decay": 0.05}),
    ]:
        p = {name: value.clone().requires_grad_() for name, value in start.items()}
        biases = {"params": [p["b1"], p["b2"]], "lr": settings["lr"] / 4, "weight_decay": 0.0}
        optimizer = getattr(torch.optim, kind)([{"params": [p["w"]]}, biases], **settings)
        scheduler = lrs.SequentialLR(
            optimizer, [lrs.LinearLR(optimizer, 0.25, 1.0, 3), lrs.CosineAnnealingLR(optimizer, 8)], [3]
        )
        run = {"kind": kind, "settings": settings, "losses": [], "norms": [], "rates": []}
        for _ in range(10):
            optimizer.zero_grad()
            out = torch.tanh(x @ p["w"] + p["b1"]) @ p["w"] + p["b2"]
            loss = ((out - y) ** 2).mean()
            loss.backward()
            run["losses"].append(loss.item())
            run["norms"].append(clip(list(p.values()), 1.0))
            run["rates"].append([group["lr"] for group in optimizer.param_groups])
            optimizer.step()
            scheduler.step()
        run["end"] = {name: flat(value) for name, value in p.items()}
        cases["runs"].append(run)
    return cases


result = {"rmsprop": rmsprop(), "schedules": schedules(), "training": training()}
pathlib.Path(__file__).with_name("optim.json").write_text(json.dumps(result) + "\n")
