import torch

META = {
    "id": "h042",
    "kind": "inference-mode",
    "verdict": "raises",
    "cause": "The start weights are made under inference_mode; autograd refuses to save such tensors.",
}


@torch.inference_mode()  # GUILTY
def warm_start(n):  # ALSO
    w = torch.zeros(n, dtype=torch.float64)
    for k in range(n):
        w[k] = 0.3 * (k - 1)
    return w


@torch.no_grad()
def warm_start_ok(n):
    w = torch.zeros(n, dtype=torch.float64)
    for k in range(n):
        w[k] = 0.3 * (k - 1)
    return w


def bowl(w, s):
    return (torch.cos(w) * w * s).sum() + w.pow(4).sum()


def meta_params():
    return {"scale": torch.tensor(0.9, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, start=warm_start):
    w = start(3)
    for _ in range(2):
        w = w - 0.1 * torch.func.grad(bowl)(w, meta["scale"])
    return bowl(w, 1.0)


def meta_step_fixed(meta):
    return meta_step(meta, warm_start_ok)
