import torch

META = {
    "id": "h028",
    "kind": "exploding-unroll",
    "verdict": "nan",
    "cause": "The gradient of the quartic is not bounded: with this rate the unrolled iterates overflow.",
}


def potential(q):
    return (q**4 / 4 - q**2 / 2).sum()


def step_unbounded(q, lr, g):
    return q - lr * g  # GUILTY


def step_bounded(q, lr, g):
    return q - lr * g / (1 + g.abs())


def meta_params():
    return {"lr": torch.tensor(0.9, dtype=torch.float64, requires_grad=True)}


def simulate(meta, stepper, horizon=12):
    q = torch.tensor([2.5, -0.3], dtype=torch.float64, requires_grad=True)
    traj = []
    for _ in range(horizon):
        (g,) = torch.autograd.grad(potential(q), q, create_graph=True)
        q = stepper(q, meta["lr"], g)
        traj.append(q)
    return potential(traj[-1])


def meta_step(meta):
    return simulate(meta, step_unbounded)


def meta_step_fixed(meta):
    return simulate(meta, step_bounded)
