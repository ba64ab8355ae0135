import torch
from torch import nn

META = {"id": "r06", "kind": "one step, first order in lr is exact", "verdict": "right"}


def data(seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(8, 3, generator=g, dtype=torch.float64), torch.randn(8, 1, generator=g, dtype=torch.float64)


def meta_params():
    return {"lr": torch.tensor(0.15, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1)).double()
    (xs, ys), (xq, yq) = data(1), data(2)
    nn.functional.mse_loss(net(xs), ys).backward()
    fast = {n: p.detach() - meta["lr"] * p.grad for n, p in net.named_parameters()}
    return nn.functional.mse_loss(torch.func.functional_call(net, fast, (xq,)), yq)
