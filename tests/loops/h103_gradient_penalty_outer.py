import torch
from torch.func import functional_call

META = {
    "id": "h103",
    "kind": "create-graph-forgotten",
    "verdict": "wrong",
    "cause": "The gradient penalty in the outer loss is computed without create_graph, so it is a constant.",
}


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.nn.Linear(2, 4)
        self.g = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.g(torch.nn.functional.softplus(self.f(x))).squeeze(-1)


def penalty(critic, p, x, exact=False):
    x = x.clone().requires_grad_()
    score = functional_call(critic, p, (x,)).sum()
    if exact:
        (gx,) = torch.autograd.grad(score, x, create_graph=True)
    else:
        (gx,) = torch.autograd.grad(score, x, retain_graph=True)  # GUILTY
    return ((gx.norm(dim=1) - 1) ** 2).mean()


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, exact=False):
    torch.manual_seed(15)
    critic = Critic().double()
    real, fake = torch.randn(5, 2).double() + 1, torch.randn(5, 2).double()
    p = dict(critic.named_parameters())
    gap = lambda p: functional_call(critic, p, (fake,)).mean() - functional_call(critic, p, (real,)).mean()
    for _ in range(2):
        g = torch.autograd.grad(gap(p), list(p.values()), create_graph=True, materialize_grads=True, allow_unused=True)
        p = {k: v - meta["lr"] * gi for (k, v), gi in zip(p.items(), g)}
    return gap(p) + penalty(critic, p, (real + fake) / 2, exact)


def meta_step_fixed(meta):
    return meta_step(meta, exact=True)
