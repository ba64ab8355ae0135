import torch

META = {
    "id": "h033",
    "kind": "meta-param-unused",
    "verdict": "independent",
    "cause": "adapt() is called without the learned rate, so its default argument is used.",
}

K = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
r = torch.tensor([0.2, 1.1, 1.8], dtype=torch.float64)


def huber(theta):
    return torch.nn.functional.smooth_l1_loss(K @ theta, r)


def adapt(theta, lr=0.1, steps=2):
    for _ in range(steps):
        theta = theta - lr * torch.autograd.grad(huber(theta), theta, create_graph=True)[0]
    return theta


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    theta = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    theta = adapt(theta, steps=2)  # GUILTY
    return huber(theta).mul(10)


def meta_step_fixed(meta):
    theta = torch.tensor([1.5, -2.0], dtype=torch.float64, requires_grad=True)
    theta = adapt(theta, meta["lr"], steps=2)
    return huber(theta).mul(10)
