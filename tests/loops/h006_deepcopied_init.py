import copy
import torch

META = {
    "id": "h006",
    "kind": "deepcopy",
    "verdict": "cut",
    "cause": "Each task starts from copy.deepcopy(initialisation): new leaves, so the initialisation gets no gradient.",
}

TASKS = [(1.0, 0.0), (0.5, 1.2), (1.7, -0.6)]
grid = torch.linspace(-2, 2, 7, dtype=torch.float64)[:, None]


def meta_params():
    torch.manual_seed(21)
    return {
        "hidden": torch.randn(1, 4, dtype=torch.float64).requires_grad_(),
        "out": torch.randn(4, 1, dtype=torch.float64).requires_grad_(),
    }


def f(w, x):
    return torch.tanh(x @ w["hidden"]) @ w["out"]


def task_loss(w, amp, phase):
    return torch.mean((f(w, grid) - amp * torch.sin(grid + phase)) ** 2)


def inner(w, task, lr=0.05):
    for _ in range(2):
        g = torch.autograd.grad(task_loss(w, *task), list(w.values()), create_graph=True)
        w = {k: v - lr * gk for (k, v), gk in zip(w.items(), g)}
    return w


def meta_step(meta):
    total = 0.0
    for task in TASKS:
        learner = copy.deepcopy(meta)  # GUILTY
        total = total + task_loss(inner(learner, task), *task)
    return total / len(TASKS)


def meta_step_fixed(meta):
    total = 0.0
    for task in TASKS:
        learner = dict(meta)
        total = total + task_loss(inner(learner, task), *task)
    return total / len(TASKS)
