import torch

META = {"id": "r01", "kind": "detach for logging", "verdict": "right"}

x = torch.tensor([[0.1, 0.8], [-0.4, 0.6], [1.0, -0.2]], dtype=torch.float64)
y = torch.tensor([0.2, 0.5, -0.7], dtype=torch.float64)
LOG = []


def loss(w):
    return (torch.tanh(x @ w[0]) @ w[1] - y).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    w = [
        torch.tensor([[0.3, -0.1], [0.8, 0.4]], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.5, 0.9], dtype=torch.float64, requires_grad=True),
    ]
    LOG.clear()
    for k in range(3):
        l = loss(w)
        LOG.append(l.detach().clone())
        g = torch.autograd.grad(l, w, create_graph=True)
        w = [a - meta["lr"] * b for a, b in zip(w, g)]
        LOG.append(float(sum(t.detach().norm() for t in w)))
    return loss(w)
