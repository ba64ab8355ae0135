import torch
from torch import nn

META = {
    "id": "h060",
    "kind": "number-extracted",
    "verdict": "cut",
    "params": ["bias"],
    "cause": "Only the bias group's rate is turned into a number with .item().",
}


def param_groups(net, meta):
    decay, plain = [], []
    for n, p in net.named_parameters():
        (plain if n.endswith("bias") else decay).append(n)
    return [
        {"names": decay, "lr": meta["weight"]},
        {"names": plain, "lr": meta["bias"].item()},  # GUILTY
    ]


def param_groups_ok(net, meta):
    groups = param_groups(net, meta)
    groups[1]["lr"] = meta["bias"]
    return groups


def meta_params():
    return {
        "weight": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "bias": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, groups_fn=param_groups):
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 2)).double()
    x, y = torch.randn(6, 2).double(), torch.tensor([0, 1, 1, 0, 1, 0])
    groups = groups_fn(net, meta)
    lr_of = {n: g["lr"] for g in groups for n in g["names"]}
    w = dict(net.named_parameters())
    for _ in range(3):
        loss = nn.functional.cross_entropy(torch.func.functional_call(net, w, x), y)
        grads = torch.autograd.grad(loss, list(w.values()), create_graph=True)
        w = {n: p - lr_of[n] * g for (n, p), g in zip(w.items(), grads)}
    return nn.functional.cross_entropy(torch.func.functional_call(net, w, x.roll(1, 1)), y)


def meta_step_fixed(meta):
    return meta_step(meta, param_groups_ok)
