"""Writes torch.safetensors with PyTorch and the safetensors package, and checks tapegrad.safetensors, which ours wrote.

tests/nn/serialize_test.cpp reads the first and compares its own output with the second, byte for byte.
"""

import pathlib

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

here = pathlib.Path(__file__).parent


def net():
    """A state dict with PyTorch's names, whose values both sides know: 0, 1, 2 ... divided by 8, less 1."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    count = 0
    for parameter in module.parameters():
        numbers = torch.arange(count, count + parameter.numel(), dtype=torch.float32)
        parameter.data = (numbers / 8 - 1).reshape(parameter.shape)
        count += parameter.numel()
    return module


module = net()
state = dict(module.state_dict())
extra = {
    "double": torch.tensor([1 / 3, -1e-300], dtype=torch.float64),
    "scalar": torch.tensor(0.5),
    "empty": torch.zeros(0, 4),
    'na"me\\ \n é 😀': torch.ones(1),
}
save_file({**state, **extra}, here / "torch.safetensors", metadata={"format": "pt", "note": 'a "b" \\ \n é 😀'})

ours = load_file(here / "tapegrad.safetensors")
other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
other.load_state_dict({name: value for name, value in ours.items() if not name.startswith("optimizer.")})
x = torch.tensor([[1.0, -2.0, 0.5]])
assert torch.equal(other(x), module(x))
assert module(x).item() == 0.2578125  # what serialize_test.cpp gets from torch.safetensors
assert torch.equal(ours["optimizer.0.exp_avg"], torch.full((2, 3), 0.25)), ours
with safe_open(here / "tapegrad.safetensors", "pt") as file:
    assert file.metadata() == {"note": 'a "b" \\ \n é 😀', "optimizer.0.step": "7"}, file.metadata()
print("PyTorch reads tapegrad.safetensors as it should")
