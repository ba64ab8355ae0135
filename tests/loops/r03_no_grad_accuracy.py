import torch
import torch.nn.functional as F

META = {"id": "r03", "kind": "no_grad evaluation", "verdict": "right"}

X = torch.tensor([[1.0, 0.2], [-0.7, 0.5], [0.3, -0.9], [0.6, 0.6]], dtype=torch.float64)
Y = torch.tensor([0, 1, 1, 0])
history = {"acc": []}


@torch.no_grad()
def accuracy(W):
    return (X @ W).argmax(1).eq(Y).double().mean().item()


def meta_params():
    return {
        "lr": torch.tensor(0.8, dtype=torch.float64, requires_grad=True),
        "wd": torch.tensor(0.01, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    W = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    history["acc"].clear()
    for _ in range(5):
        obj = F.cross_entropy(X @ W, Y) + meta["wd"] * W.pow(2).sum()
        W = W - meta["lr"] * torch.autograd.grad(obj, W, create_graph=True)[0]
        history["acc"].append(accuracy(W))
    with torch.inference_mode():
        history["final"] = F.cross_entropy(X @ W, Y).item()
    return F.cross_entropy(X.flip(1) @ W, Y)
