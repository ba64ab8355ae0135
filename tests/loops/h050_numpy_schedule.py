import numpy as np
import torch

META = {
    "id": "h050",
    "kind": "number-extracted",
    "verdict": "cut",
    "params": ["decay"],
    "cause": "The decay schedule is computed with numpy from a detached copy of the learned decay.",
}


def schedule_np(decay, n):
    d = decay.detach().numpy()  # GUILTY
    return torch.from_numpy(np.exp(-d * np.arange(n)))


def schedule_t(decay, n):
    return torch.exp(-decay * torch.arange(n, dtype=decay.dtype))


def meta_params():
    return {
        "base": torch.tensor(0.3, dtype=torch.float64, requires_grad=True),
        "decay": torch.tensor(0.4, dtype=torch.float64, requires_grad=True),
    }


def himmelblau(z):
    a, b = z.unbind()
    return ((a * a + b - 11) ** 2 + (a + b * b - 7) ** 2) / 100


def meta_step(meta, schedule=schedule_np):
    lrs = meta["base"] * schedule(meta["decay"], 5)
    z = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    for k in range(5):
        z = z - lrs[k] * torch.autograd.grad(himmelblau(z), z, create_graph=True)[0]
    return himmelblau(z)


def meta_step_fixed(meta):
    return meta_step(meta, schedule_t)
