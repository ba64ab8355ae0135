import torch
import torch.nn as nn

META = {
    "id": "h044",
    "kind": "dtype-error",
    "verdict": "raises",
    "cause": "The query set stays in float32 while the network is double.",
}


def load_split(fix):
    torch.manual_seed(40)
    support = torch.randn(5, 3).double()
    query = torch.randn(5, 3)  # GUILTY
    if fix:
        query = query.double()
    return support, query


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def autoencode(net, p, x):
    return torch.func.functional_call(net, p, (x,)).sub(x).pow(2).mean()


def run(meta, fix):
    support, query = load_split(fix)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 3)).double()
    p = dict(net.named_parameters())
    g = torch.autograd.grad(autoencode(net, p, support), list(p.values()), create_graph=True)
    p = {k: v - meta["lr"] * gi for (k, v), gi in zip(p.items(), g)}
    return autoencode(net, p, query)


def meta_step(meta):
    return run(meta, fix=False)


def meta_step_fixed(meta):
    return run(meta, fix=True)
