import torch
from torch import nn

META = {
    "id": "h011",
    "kind": "optimizer-step",
    "verdict": "cut",
    "cause": "The inner loop uses torch.optim.SGD with a number for the rate; its step writes leaves under no_grad.",
}

torch.manual_seed(77)
TRAIN = torch.randn(10, 4), torch.randn(10, 2)
VALID = torch.randn(6, 4), torch.randn(6, 2)


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def meta_params():
    return {"raw_lr": torch.tensor(-1.5, requires_grad=True)}


def meta_step(meta):
    model = net()
    lr = nn.functional.softplus(meta["raw_lr"])
    optimizer = torch.optim.SGD(model.parameters(), lr=lr.item())  # GUILTY
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(TRAIN[0]), TRAIN[1]).backward(create_graph=True)
        optimizer.step()  # ALSO
    return nn.functional.mse_loss(model(VALID[0]), VALID[1])


def meta_step_fixed(meta):
    model = net()
    lr = nn.functional.softplus(meta["raw_lr"])
    ps = dict(model.named_parameters())
    for _ in range(5):
        out = torch.func.functional_call(model, ps, (TRAIN[0],))
        gs = torch.autograd.grad(nn.functional.mse_loss(out, TRAIN[1]), list(ps.values()), create_graph=True)
        ps = {k: p - lr * g for (k, p), g in zip(ps.items(), gs)}
    return nn.functional.mse_loss(torch.func.functional_call(model, ps, (VALID[0],)), VALID[1])
