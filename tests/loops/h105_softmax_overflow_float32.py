import torch

META = {
    "id": "h105",
    "kind": "overflow",
    "verdict": "nan",
    "cause": "A hand-written softmax exponentiates large scores and divides inf by inf.",
}


def softmax(z):
    e = torch.exp(z)  # GUILTY
    return e / e.sum(-1, keepdim=True)


def softmax_shifted(z):
    e = torch.exp(z - z.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [-2.0, 0.5]])
Y = torch.tensor([0, 1, 0])


def nll(W, softmax, beta):
    return -torch.log(softmax(beta * (X @ W))[torch.arange(3), Y] + 1e-6).mean()


def meta_params():
    return {"lr": torch.tensor(0.02, requires_grad=True)}


def meta_step(meta, softmax=softmax):
    W = torch.tensor([[0.1, 0.12], [0.3, 0.27]], requires_grad=True)
    for beta in (5.0, 10.0, 200.0):
        W = W - meta["lr"] * torch.autograd.grad(nll(W, softmax, beta), W, create_graph=True)[0]
    return nll(W, softmax, 1.0)


def meta_step_fixed(meta):
    return meta_step(meta, softmax_shifted)
