import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

META = {
    "id": "h037",
    "kind": "clip-inplace",
    "verdict": "wrong",
    "cause": "clip_grad_norm_ rescales .grad outside the graph; the meta-gradient belongs to a different update.",
}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.fc2 = nn.Linear(4, 2)

    def forward(self, s):
        return torch.log_softmax(self.fc2(torch.tanh(self.fc1(s))), -1)


def rollout():
    g = torch.Generator().manual_seed(17)
    return (
        torch.randn(8, 3, generator=g).double(),
        torch.randint(0, 2, (8,), generator=g),
        torch.randn(8, generator=g).double() * 4,
    )


def pg_loss(policy, params, batch):
    s, a, adv = batch
    lp = torch.func.functional_call(policy, params, s)
    return -(lp.gather(1, a[:, None]).squeeze(1) * adv).mean()


def meta_params():
    return {"lr": torch.tensor(0.7, dtype=torch.float64, requires_grad=True)}


def clip_outside(params, grads, max_norm):
    for p, g in zip(params, grads):
        p.grad = g
    clip_grad_norm_(params, max_norm, foreach=False)  # GUILTY
    return [p.grad for p in params]


def clip_inside(params, grads, max_norm):
    total = torch.stack([g.norm() for g in grads]).norm()
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
    return [g * scale for g in grads]


def meta_step(meta, clip=clip_outside):
    torch.manual_seed(12)
    policy = Policy().double()
    params = dict(policy.named_parameters())
    batch = rollout()
    for _ in range(2):
        plist = list(params.values())
        for p in plist:
            p.retain_grad() if not p.is_leaf else None
        gs = clip(plist, torch.autograd.grad(pg_loss(policy, params, batch), plist, create_graph=True), 0.5)
        params = {n: p - meta["lr"] * g for (n, p), g in zip(params.items(), gs)}
    return pg_loss(policy, params, batch)


def meta_step_fixed(meta):
    return meta_step(meta, clip_inside)
