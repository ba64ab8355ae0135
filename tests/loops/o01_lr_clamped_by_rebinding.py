import torch

META = {
    "id": "o01",
    "kind": "rebound-meta-parameter",
    "cause": "lr = lr.clamp(min=0) makes a new non-leaf tensor; the optimiser goes on stepping the old leaf.",
}

x = torch.tensor([[0.3, 0.9], [-0.5, 0.2], [1.0, -0.7]], dtype=torch.float64)
y = torch.tensor([0.4, -0.1, 0.8], dtype=torch.float64)


def loss(w):
    return (torch.tanh(x @ w) - y).pow(2).mean()


def meta_step(lr):
    w = torch.tensor([0.1, -0.4], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        w = w - lr * torch.autograd.grad(loss(w), w, create_graph=True)[0]
    return loss(w)


def run():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.SGD([lr], lr=0.5)
    seen = []
    for it in range(6):
        opt.zero_grad()
        outer = meta_step(lr)
        outer.backward()
        opt.step()
        lr = lr.clamp(min=0.0).detach().requires_grad_()  # GUILTY
        seen.append((float(lr.detach()), float(outer.detach())))
    return seen


def run_fixed():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.SGD([lr], lr=0.5)
    seen = []
    for it in range(6):
        opt.zero_grad()
        outer = meta_step(lr)
        outer.backward()
        opt.step()
        with torch.no_grad():
            lr.clamp_(min=0.0)
        seen.append((float(lr.detach()), float(outer.detach())))
    return seen
