import torch
import torch.nn.functional as F

META = {"id": "r25", "kind": "float32, K=5, shift detached in softmax", "verdict": "right"}

X = torch.tensor([[0.5, -1.0, 0.2], [1.2, 0.3, -0.4], [-0.7, 0.8, 0.9], [0.1, 0.1, -1.0]])
Y = torch.tensor([0, 2, 1, 2])


def log_softmax(z):
    z = z - z.max(1, keepdim=True).values.detach()
    return z - z.exp().sum(1, keepdim=True).log()


def meta_params():
    return {"lr": torch.tensor(0.8, requires_grad=True), "mom": torch.tensor(0.4, requires_grad=True)}


def meta_step(meta):
    W = torch.zeros(3, 3, requires_grad=True)
    buf = None
    for _ in range(5):
        g = torch.autograd.grad(F.nll_loss(log_softmax(X @ W), Y), W, create_graph=True)[0]
        buf = g if buf is None else meta["mom"] * buf + g
        W = W - meta["lr"] * buf
    return F.nll_loss(log_softmax(X.roll(1, 1) @ W), Y)
