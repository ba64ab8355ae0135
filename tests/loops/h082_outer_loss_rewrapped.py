import torch

META = {
    "id": "h082",
    "kind": "tensor-recreated",
    "verdict": "cut",
    "cause": "The mean outer loss is rebuilt with torch.tensor(..., requires_grad=True).",
}


def collect(per_task, joined=False):
    if joined:
        return torch.stack(per_task).mean()
    return torch.tensor(per_task, requires_grad=True).mean()  # GUILTY


def sample_task(i):
    g = torch.Generator().manual_seed(i)
    return torch.randn(6, 2, generator=g), torch.randn(6, generator=g)


def run_task(lr, i):
    x, y = sample_task(i)
    w = torch.tensor([0.1, 0.1], requires_grad=True)
    for _ in range(2):
        w = w - lr * torch.autograd.grad(((x @ w).tanh() - y).pow(2).mean(), w, create_graph=True)[0]
    return ((x @ w).tanh() - y).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.4, requires_grad=True)}


def meta_step(meta):
    return collect([run_task(meta["lr"], i) for i in range(4)])


def meta_step_fixed(meta):
    return collect([run_task(meta["lr"], i) for i in range(4)], joined=True)
