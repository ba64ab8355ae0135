import torch

META = {"id": "r15", "kind": "meta-parameters through exp/softplus/sigmoid", "verdict": "right"}

target = torch.tensor([1.0, -1.0, 2.0, 0.5], dtype=torch.float64)


def loss(w):
    return (w.sinh() - target).pow(2).sum() / 10


def meta_params():
    d = dict(dtype=torch.float64, requires_grad=True)
    return {
        "log_lr": torch.tensor(-2.0, **d),
        "raw_eps": torch.tensor(-1.0, **d),
        "b1": torch.tensor(1.5, **d),
        "b2": torch.tensor(2.0, **d),
    }


def meta_step(meta):
    lr, eps = meta["log_lr"].exp(), torch.nn.functional.softplus(meta["raw_eps"])
    b1, b2 = torch.sigmoid(meta["b1"]), torch.sigmoid(meta["b2"])
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    m = torch.zeros(4, dtype=torch.float64)
    v = torch.zeros(4, dtype=torch.float64)
    for t in range(1, 6):
        g = torch.autograd.grad(loss(w), w, create_graph=True)[0]
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        w = w - lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
    return loss(w)
