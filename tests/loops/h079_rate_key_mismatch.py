import torch
from torch import nn

META = {
    "id": "h079",
    "kind": "meta-param-unused",
    "verdict": "independent",
    "cause": "Rates are stored under names with underscores but looked up with dots, so .get falls back to the default.",
}

DEFAULT = 0.1


def rate_for(meta, name):
    return meta.get(name, DEFAULT)  # GUILTY


def rate_for_ok(meta, name):
    return meta.get(name.replace(".", "_"), DEFAULT)


def make_net():
    torch.manual_seed(16)
    return nn.Sequential(nn.Linear(2, 4), nn.Softsign(), nn.Linear(4, 1)).double()


def meta_params():
    return {
        n.replace(".", "_"): torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
        for n, _ in make_net().named_parameters()
    }


def meta_step(meta, rate_for=rate_for):
    net = make_net()
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).view(6, 2)
    y = x.prod(1, keepdim=True)
    w = dict(net.named_parameters())
    call = lambda w, x: torch.func.functional_call(net, w, (x,))
    for _ in range(2):
        g = torch.autograd.grad((call(w, x) - y).pow(2).mean(), list(w.values()), create_graph=True)
        w = {n: p - rate_for(meta, n) * gi for (n, p), gi in zip(w.items(), g)}
    return (call(w, x.flip(0)) - y).pow(2).mean()


def meta_step_fixed(meta):
    return meta_step(meta, rate_for_ok)
