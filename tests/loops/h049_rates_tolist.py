import torch

META = {
    "id": "h049",
    "kind": "number-extracted",
    "verdict": "cut",
    "cause": "rates.tolist() turns the per-layer rates into Python numbers.",
}


def layer_shapes(sizes):
    return [(a, b) for a, b in zip(sizes, sizes[1:])]


class LayerwiseSGD:
    def __init__(self, rates, as_list=True):
        if as_list:
            rates = rates.tolist()  # GUILTY
        self.rates = rates

    def __call__(self, layers, grads):
        return [W - r * G for W, r, G in zip(layers, self.rates, grads)]


def net(layers, h):
    for W in layers[:-1]:
        h = torch.nn.functional.gelu(h @ W)
    return h @ layers[-1]


def meta_params():
    return {"rates": torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True)}


def episode(rates, as_list):
    g = torch.Generator().manual_seed(2)
    layers = [
        torch.randn(*s, generator=g, dtype=torch.float64).div(s[0] ** 0.5).requires_grad_()
        for s in layer_shapes([2, 4, 4, 1])
    ]
    x = torch.randn(10, 2, generator=g, dtype=torch.float64)
    y = (x[:, :1] - x[:, 1:]).abs()
    opt = LayerwiseSGD(rates, as_list)
    for _ in range(3):
        l = (net(layers, x[:5]) - y[:5]).pow(2).mean()
        layers = opt(layers, torch.autograd.grad(l, layers, create_graph=True))
    return (net(layers, x[5:]) - y[5:]).pow(2).mean()


def meta_step(meta):
    return episode(meta["rates"], True)


def meta_step_fixed(meta):
    return episode(meta["rates"], False)
