import torch

META = {
    "id": "o11",
    "kind": "step-before-backward",
    "cause": "outer_opt.step() runs before backward, right after zero_grad, so it has nothing to apply.",
}

X = torch.linspace(-1, 1, 8, dtype=torch.float64)


def outer_loss(alpha, lam):
    c = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    P = torch.stack([X**k for k in range(3)], 1)
    for _ in range(3):
        obj = (P @ c - X.exp()).pow(2).mean() + lam * c.pow(2).sum()
        c = c - alpha * torch.autograd.grad(obj, c, create_graph=True)[0]
    return (P @ c - X.exp()).pow(2).mean()


def fit(right_order):
    alpha = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    lam = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    outer_opt = torch.optim.SGD([alpha, lam], lr=0.05)
    for epoch in range(5):
        outer_opt.zero_grad()
        loss = outer_loss(alpha, lam)
        if right_order:
            loss.backward()
            outer_opt.step()
        else:
            outer_opt.step()  # GUILTY
            loss.backward()
    return alpha.item(), lam.item()


def run():
    return fit(False)


def run_fixed():
    return fit(True)
