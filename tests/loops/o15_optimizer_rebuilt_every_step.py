import torch

META = {
    "id": "o15",
    "kind": "optimizer-rebuilt",
    "cause": "A new Adam is built in every outer iteration, so its moments are lost and each step has unit size.",
}

B = torch.tensor([0.3, -1.0, 0.6], dtype=torch.float64)


def step_loss(lr):
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        w = w - lr * torch.autograd.grad((torch.sin(w) - B).pow(2).sum(), w, create_graph=True)[0]
    return (torch.sin(w) - B).pow(2).sum()


def run():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    trace = []
    for it in range(8):
        meta_opt = torch.optim.Adam([lr], lr=0.1)  # GUILTY
        meta_opt.zero_grad()
        step_loss(lr).backward()
        meta_opt.step()
        trace.append(lr.item())
    return trace


def run_fixed():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    meta_opt = torch.optim.Adam([lr], lr=0.1)
    trace = []
    for it in range(8):
        meta_opt.zero_grad()
        step_loss(lr).backward()
        meta_opt.step()
        trace.append(lr.item())
    return trace
