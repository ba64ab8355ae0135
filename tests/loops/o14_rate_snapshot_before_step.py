import torch

META = {
    "id": "o14",
    "kind": "stale-value",
    "cause": "exp(log_lr) is computed once before the outer loop, so its graph is freed and its value is stale.",
    "raises": True,
}


def inner(lr):
    w = torch.tensor([0.9, -0.7], dtype=torch.float64, requires_grad=True)
    g = torch.autograd.grad((w**4).sum() + w.prod(), w, create_graph=True)[0]
    w = w - lr * g
    return (w**4).sum() + w.prod()


def run():
    log_lr = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.Adam([log_lr], lr=0.1)
    lr = log_lr.exp()  # GUILTY
    out = []
    for _ in range(4):
        opt.zero_grad()
        loss = inner(lr)
        loss.backward()
        opt.step()
        out.append(loss.item())
    return out


def run_fixed():
    log_lr = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.Adam([log_lr], lr=0.1)
    out = []
    for _ in range(4):
        lr = log_lr.exp()
        opt.zero_grad()
        loss = inner(lr)
        loss.backward()
        opt.step()
        out.append(loss.item())
    return out
