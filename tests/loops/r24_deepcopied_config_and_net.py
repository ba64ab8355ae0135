import copy
import torch
from torch import nn

META = {"id": "r24", "kind": "deepcopy of what is not learned", "verdict": "right"}

BASE = {"steps": 2, "widths": [2, 3, 1]}
torch.manual_seed(26)
TEMPLATE = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1)).double()


def meta_params():
    return {"lr": torch.tensor(1.0, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    cfg = copy.deepcopy(BASE)
    net = copy.deepcopy(TEMPLATE)
    net.load_state_dict(TEMPLATE.state_dict())
    x = torch.tensor([[0.1, 0.9], [0.8, -0.3], [-0.4, 0.2]], dtype=torch.float64)
    y = torch.tensor([[1.0], [0.0], [0.5]], dtype=torch.float64)
    p = dict(net.named_parameters())
    f = lambda p: (torch.func.functional_call(net, p, (x,)) - y).pow(2).sum()
    for _ in range(cfg["steps"]):
        g = torch.autograd.grad(f(p), list(p.values()), create_graph=True)
        p = {k: v.sub(gi.mul(meta["lr"])) for (k, v), gi in zip(p.items(), g)}
    return f(p)
