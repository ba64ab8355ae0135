import torch
from torch import nn
from torch.func import functional_call

META = {
    "id": "h088",
    "kind": "functional-call-wrong-dict",
    "verdict": "raises",
    "cause": "The dict keys lack the 'encoder.' prefix, so functional_call on the whole model cannot place them.",
}


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))

    def forward(self, a, b):
        return (self.encoder(a) - self.encoder(b)).square().sum(-1)


def contrastive(d, same):
    return torch.where(same, d, torch.nn.functional.softplus(1 - d)).mean()


A = torch.tensor([[0.1, 0.3], [0.9, -0.5], [0.4, 0.4]], dtype=torch.float64)
B = torch.tensor([[0.2, 0.2], [-0.7, 0.6], [0.5, 0.1]], dtype=torch.float64)
SAME = torch.tensor([True, False, True])


def meta_params():
    return {"lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def query_loss(net, fast, prefix):
    named = {prefix + n: w for n, w in fast.items()}  # ALSO
    return contrastive(functional_call(net, named, (A + 0.1, B)), SAME)


def adapt(net, lr):
    fast = dict(net.encoder.named_parameters())
    d = (functional_call(net.encoder, fast, (A,)) - functional_call(net.encoder, fast, (B,))).square().sum(-1)
    gs = torch.autograd.grad(contrastive(d, SAME), list(fast.values()), create_graph=True)
    return {n: w - lr * g for (n, w), g in zip(fast.items(), gs)}


def meta_step(meta):
    torch.manual_seed(13)
    net = Siamese().double()
    return query_loss(net, adapt(net, meta["lr"]), prefix="")  # GUILTY


def meta_step_fixed(meta):
    torch.manual_seed(13)
    net = Siamese().double()
    return query_loss(net, adapt(net, meta["lr"]), prefix="encoder.")
