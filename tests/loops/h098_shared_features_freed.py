import torch

META = {
    "id": "h098",
    "kind": "graph-freed",
    "verdict": "raises",
    "cause": "Two losses share one feature graph; the first autograd.grad without retain/create_graph frees it for the second.",
}

imgs = torch.linspace(-1, 1, 16, dtype=torch.float64).view(4, 4)
ya = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64)
yb = torch.tensor([0.3, -0.1, 0.8, 0.2], dtype=torch.float64)


class MultiTask:
    def __init__(self):
        self.base = torch.diag(torch.tensor([0.5, -0.3, 0.8, 0.2], dtype=torch.float64)).requires_grad_()
        self.ha = torch.ones(4, dtype=torch.float64, requires_grad=True)
        self.hb = torch.full((4,), -0.5, dtype=torch.float64, requires_grad=True)

    def losses(self, base, ha, hb):
        z = torch.exp(-((imgs @ base) ** 2))
        return (torch.nn.functional.binary_cross_entropy_with_logits(z @ ha, ya), (z @ hb - yb).pow(2).mean())

    def grads(self, losses, ws, **kw):
        base, ha, hb = ws
        la, lb = losses
        g_base_a, ga = torch.autograd.grad(la, (base, ha), **kw)  # GUILTY
        g_base_b, gb = torch.autograd.grad(lb, (base, hb), **kw)
        return g_base_a + g_base_b, ga, gb


def meta_params():
    return {"lrs": torch.tensor([0.1, 0.3, 0.2], dtype=torch.float64, requires_grad=True)}


def go(meta, **kw):
    m = MultiTask()
    ws = [m.base, m.ha, m.hb]
    for _ in range(2):
        gs = m.grads(m.losses(*ws), ws, **kw)
        ws = [w - r * g for w, r, g in zip(ws, meta["lrs"], gs)]
    return sum(m.losses(*ws))


def meta_step(meta):
    return go(meta)


def meta_step_fixed(meta):
    return go(meta, create_graph=True)
