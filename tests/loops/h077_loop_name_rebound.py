import torch

META = {
    "id": "h077",
    "kind": "python-rebinding",
    "verdict": "independent",
    "cause": "Assigning to the loop variable changes a local name, not the dictionary of weights.",
}

x = torch.tensor([[0.3, -0.1], [0.7, 0.9]], dtype=torch.float64)


def fresh():
    return {
        "u": torch.tensor([[0.2, 0.1], [-0.5, 0.4]], dtype=torch.float64, requires_grad=True),
        "v": torch.tensor([0.6, -0.3], dtype=torch.float64, requires_grad=True),
    }


def predict(p):
    return torch.sigmoid(x @ p["u"]) @ p["v"]


def loss(p):
    return (predict(p) - torch.tensor([0.5, 0.1], dtype=torch.float64)).pow(2).sum()


def meta_params():
    return {"lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    p = fresh()
    for _ in range(3):
        grads = torch.autograd.grad(loss(p), list(p.values()), create_graph=True)
        for w, g in zip(p.values(), grads):
            w = w - meta["lr"] * g  # GUILTY
    return loss(p)


def meta_step_fixed(meta):
    p = fresh()
    for _ in range(3):
        grads = torch.autograd.grad(loss(p), list(p.values()), create_graph=True)
        for k, g in zip(list(p), grads):
            p[k] = p[k] - meta["lr"] * g
    return loss(p)
