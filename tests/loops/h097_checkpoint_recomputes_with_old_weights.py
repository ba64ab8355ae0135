"""Memory-saving checkpoint inside the forward of a module that is called with functional_call."""

import torch
from torch.utils.checkpoint import checkpoint

META = {
    "id": "h097",
    "kind": "checkpointing",
    "verdict": "wrong",
    "cause": "The checkpointed block is recomputed after functional_call has restored the module's own weights.",
}


class DeepNet(torch.nn.Module):
    save_memory = True

    def __init__(self, width, depth):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def block(self, i, x):
        return torch.tanh(self.blocks[i](x)) + x

    def forward(self, x):
        for i in range(len(self.blocks)):
            if self.save_memory:
                x = checkpoint(self.block, i, x, use_reentrant=False)  # GUILTY
            else:
                x = self.block(i, x)
        return x.sum(-1)


class PlainNet(DeepNet):
    save_memory = False


def meta_params():
    return {"lr": torch.tensor(0.05, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, Net=DeepNet):
    torch.manual_seed(33)
    net = Net(3, 2).double()
    x = torch.randn(4, 3, dtype=torch.float64)
    y = torch.randn(4, dtype=torch.float64)
    w = dict(net.named_parameters())
    crit = lambda w: (torch.func.functional_call(net, w, (x,)) - y).pow(2).mean()
    for _ in range(2):
        gs = torch.autograd.grad(crit(w), list(w.values()), create_graph=True)
        w = {k: v - meta["lr"] * g for (k, v), g in zip(w.items(), gs)}
    return crit(w)


def meta_step_fixed(meta):
    return meta_step(meta, PlainNet)
