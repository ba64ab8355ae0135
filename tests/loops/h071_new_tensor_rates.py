import torch

META = {
    "id": "h071",
    "kind": "tensor-recreated",
    "verdict": "cut",
    "cause": "w.new_tensor(rate) copies the rate's value into a new leaf.",
}


class Task:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(5, 2, generator=g, dtype=torch.float64)
        self.y = torch.randint(0, 2, (5,), generator=g).double()

    def loss(self, w):
        return torch.nn.functional.binary_cross_entropy_with_logits((self.x**3) @ w, self.y)


def per_element(rate, w, copy=True):
    if copy:
        return w.new_tensor(rate).expand_as(w)  # GUILTY
    return rate.to(w.dtype).expand_as(w)


def meta_params():
    return {"rate": torch.tensor([0.5], dtype=torch.float64, requires_grad=True)}


def outer(meta, copy):
    total = torch.zeros((), dtype=torch.float64)
    for seed in (1, 2, 3):
        t = Task(seed)
        w = torch.tensor([0.2, -0.2], dtype=torch.float64, requires_grad=True)
        for _ in range(2):
            g = torch.autograd.grad(t.loss(w), w, create_graph=True)[0]
            w = w - per_element(meta["rate"], w, copy) * g
        total += t.loss(w)
    return total


def meta_step(meta):
    return outer(meta, True)


def meta_step_fixed(meta):
    return outer(meta, False)
