import torch

META = {
    "id": "h093",
    "kind": "gradient-hook",
    "verdict": "wrong",
    "cause": "A hook left on the adapted weights clamps every gradient that passes, the meta-gradient included.",
}


def guard(w, limit=1e-2):
    w.register_hook(lambda g: g.clamp(-limit, limit))  # GUILTY
    return w


def no_guard(w):
    return w


roots = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)


def poly(w):
    return sum((w - r).prod() ** 2 for r in roots)


def meta_params():
    return {
        "lr": torch.tensor(0.02, dtype=torch.float64, requires_grad=True),
        "w0": torch.tensor([0.9, 0.1], dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, guard=guard):
    w = meta["w0"]
    g = torch.autograd.grad(poly(w), w, create_graph=True)[0]
    w = guard(w - meta["lr"] * g)
    return poly(w)


def meta_step_fixed(meta):
    return meta_step(meta, no_guard)
