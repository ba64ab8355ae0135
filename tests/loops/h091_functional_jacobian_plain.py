import torch
from torch.autograd.functional import jacobian

META = {
    "id": "h091",
    "kind": "create-graph-forgotten",
    "verdict": "wrong",
    "cause": "autograd.functional.jacobian returns constants unless create_graph=True.",
}

t = torch.tensor([0.0, 0.5, 1.0, 1.5], dtype=torch.float64)
obs = torch.tensor([2.0, 1.4, 1.1, 0.8], dtype=torch.float64)


def residual(theta, tau):
    return (theta[0] * torch.exp(-t * theta[1]) - obs) * torch.sigmoid(tau * t + 1)


def gauss_newton(theta, tau, n, exact=False):
    for _ in range(n):
        f = lambda th: residual(th, tau)
        J = jacobian(f, theta, create_graph=exact)  # GUILTY
        r = residual(theta, tau)
        theta = theta - 0.5 * torch.linalg.solve(J.T @ J + 0.1 * torch.eye(2, dtype=J.dtype), J.T @ r)
    return theta


def meta_params():
    return {"tau": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def score(theta):
    return (theta - torch.tensor([1.9, 0.6], dtype=torch.float64)).pow(2).sum()


def meta_step(meta):
    theta0 = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    return score(gauss_newton(theta0, meta["tau"], 3))  # ALSO


def meta_step_fixed(meta):
    theta0 = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    return score(gauss_newton(theta0, meta["tau"], 3, exact=True))
