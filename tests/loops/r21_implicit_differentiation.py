"""Ridge strength by implicit differentiation: solve without a graph, then one Newton step to attach it."""

import torch

META = {"id": "r21", "kind": "implicit differentiation", "verdict": "right"}

X = torch.tensor([[1.0, 0.3], [0.2, -0.8], [-0.5, 1.1], [0.9, 0.4]], dtype=torch.float64)
y = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)


def inner(w, log_lam):
    return torch.nn.functional.binary_cross_entropy_with_logits(X @ w, y) + log_lam.exp() * w.pow(2).sum()


def solve(log_lam, iters=25):
    w = torch.zeros(2, dtype=torch.float64)
    lam = log_lam.detach()
    for _ in range(iters):
        w = w.detach().requires_grad_()
        g = torch.autograd.grad(inner(w, lam), w, create_graph=True)[0]
        H = torch.stack([torch.autograd.grad(gi, w, retain_graph=True)[0] for gi in g])
        with torch.no_grad():
            w = w - torch.linalg.solve(H, g)
    return w.detach()


def meta_params():
    return {"log_lam": torch.tensor(-1.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    w = solve(meta["log_lam"]).requires_grad_()
    g = torch.autograd.grad(inner(w, meta["log_lam"]), w, create_graph=True)[0]
    H = torch.stack([torch.autograd.grad(gi, w, retain_graph=True)[0] for gi in g])
    w_star = w.detach() - torch.linalg.solve(H.detach(), g_attached(w.detach(), meta["log_lam"]))
    return torch.nn.functional.binary_cross_entropy_with_logits(X.flip(1) @ w_star, y)


def g_attached(w0, log_lam):
    w = w0.clone().requires_grad_()
    return torch.autograd.grad(inner(w, log_lam), w, create_graph=True)[0]
