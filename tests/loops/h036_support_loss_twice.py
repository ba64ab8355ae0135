import torch

META = {
    "id": "h036",
    "kind": "graph-freed",
    "verdict": "raises",
    "cause": "The inner gradient frees the support graph that the outer loss goes through again.",
}

sx = torch.tensor([[0.1, 0.2], [0.3, -0.4], [-0.5, 0.6]], dtype=torch.float64)
sy = torch.tensor([[1.0], [0.0], [0.5]], dtype=torch.float64)


def meta_params():
    return {"w0": torch.tensor([[0.7], [-1.2]], dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    w0 = meta["w0"]
    support = ((torch.exp(sx @ w0) - sy) ** 2).mean()
    (g,) = torch.autograd.grad(support, w0)  # GUILTY
    w1 = w0 - 0.1 * g
    query = ((torch.exp(sx.flip(0) @ w1) - sy) ** 2).mean()
    return query + 0.5 * support


def meta_step_fixed(meta):
    w0 = meta["w0"]
    support = ((torch.exp(sx @ w0) - sy) ** 2).mean()
    (g,) = torch.autograd.grad(support, w0, create_graph=True)
    w1 = w0 - 0.1 * g
    query = ((torch.exp(sx.flip(0) @ w1) - sy) ** 2).mean()
    return query + 0.5 * support
