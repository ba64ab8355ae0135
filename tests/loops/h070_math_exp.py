import math
import warnings
import torch

META = {
    "id": "h070",
    "kind": "number-extracted",
    "verdict": "cut",
    "cause": "math.exp turns the learned log rate into a Python float.",
}

warnings.filterwarnings("ignore", message="Converting a tensor")


def positive(t):
    return math.exp(t)  # GUILTY


def positive_t(t):
    return torch.exp(t)


def meta_params():
    return {"log_alpha": torch.tensor(-1.2, dtype=torch.float64, requires_grad=True)}


def nll(loc, log_scale):
    d = torch.tensor([0.3, 1.1, -0.4, 2.2, 0.7], dtype=torch.float64)
    return (log_scale + 0.5 * ((d - loc) / log_scale.exp()) ** 2).mean()


def meta_step(meta, positive=positive):
    alpha = positive(meta["log_alpha"])
    loc = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    ls = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    for _ in range(3):
        g_loc, g_ls = torch.autograd.grad(nll(loc, ls), (loc, ls), create_graph=True)
        loc, ls = loc - alpha * g_loc, ls - alpha * g_ls
    return nll(loc, ls)


def meta_step_fixed(meta):
    return meta_step(meta, positive_t)
