import torch
import torch.nn as nn

META = {
    "id": "h058",
    "kind": "setattr-type-error",
    "verdict": "raises",
    "cause": "A plain tensor is assigned to a registered Parameter name.",
}


def get_module(root, dotted):
    *path, last = dotted.split(".")
    for part in path:
        root = getattr(root, part)
    return root, last


def assign(root, dotted, value, delete=False):
    mod, attr = get_module(root, dotted)
    if delete:
        del mod._parameters[attr]
    setattr(mod, attr, value)  # GUILTY


def fresh_net():
    torch.manual_seed(8)
    return nn.Sequential(nn.Linear(2, 3), nn.LeakyReLU(0.2), nn.Linear(3, 1)).double()


x = torch.tensor([[1.0, 2.0], [-0.5, 0.1], [0.2, -1.1]], dtype=torch.float64)


def meta_params():
    return {"lr": torch.tensor(0.25, dtype=torch.float64, requires_grad=True)}


def run(meta, delete):
    net = fresh_net()
    items = list(net.named_parameters())
    gs = torch.autograd.grad((net(x) - 1).pow(2).mean(), [p for _, p in items], create_graph=True)
    for (name, p), g in zip(items, gs):
        assign(net, name, p - meta["lr"] * g, delete)
    return (net(-x) - 1).pow(2).mean()


def meta_step(meta):
    return run(meta, False)


def meta_step_fixed(meta):
    return run(meta, True)
