"""Writes nw_training.json: kernel regression trained by PyTorch in float64, from data and weights that it keeps."""

import json
import pathlib

import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
n, epochs, learning_rate = 50, 100, 0.5

x, _ = torch.sort(torch.rand(n) * 5)
y = 2 * torch.sin(x) + x**0.8 + torch.normal(0.0, 0.5, (n,))
others = ~torch.eye(n, dtype=torch.bool)
keys = x.repeat(n, 1)[others].reshape(n, n - 1)
values = y.repeat(n, 1)[others].reshape(n, n - 1)


def train(w):
    w = w.clone().requires_grad_()
    optimizer = torch.optim.SGD([w], lr=learning_rate)
    loss_of = torch.nn.MSELoss(reduction="none")
    losses = []
    for _ in range(epochs):
        queries = x.repeat_interleave(n - 1).reshape(n, n - 1)
        attention = torch.softmax(-(((queries - keys) * w) ** 2) / 2, dim=1)
        predictions = torch.bmm(attention.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)
        loss = loss_of(predictions, y).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, w.detach().tolist()


runs = {}
for name, w in [("one weight a key", torch.rand(n - 1)), ("one width for all keys", torch.rand(1))]:
    losses, final = train(w)
    runs[name] = {"w": w.tolist(), "losses": losses, "w after": final}
    print(name, losses[:3], losses[-3:])

content = {"learning rate": learning_rate, "x": x.tolist(), "y": y.tolist(), "runs": runs}
pathlib.Path(__file__).with_name("nw_training.json").write_text(json.dumps(content) + "\n")
