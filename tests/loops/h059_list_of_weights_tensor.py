import torch

META = {
    "id": "h059",
    "kind": "tensor-recreated",
    "verdict": "cut",
    "params": ["w_rec", "w_kl"],
    "cause": "torch.tensor([a, b]) of two learned loss weights makes new numbers; torch.stack keeps them.",
}


class Elbo:
    def __init__(self, meta, stack=False):
        if stack:
            self.coef = torch.stack([meta["w_rec"], meta["w_kl"]])
        else:
            self.coef = torch.tensor([meta["w_rec"], meta["w_kl"]], dtype=torch.float64)  # GUILTY

    def terms(self, mu, logvar, x):
        rec = (x - mu.sinh()).pow(2).mean()
        kl = 0.5 * (mu**2 + logvar.exp() - 1 - logvar).mean()
        return torch.stack([rec, kl])

    def __call__(self, *a):
        return (self.coef * self.terms(*a)).sum()


def meta_params():
    return {
        k: torch.tensor(v, dtype=torch.float64, requires_grad=True)
        for k, v in dict(w_rec=1.0, w_kl=0.3, lr=0.2).items()
    }


def train(meta, stack):
    x = torch.tensor([0.2, 1.4, -0.6], dtype=torch.float64)
    mu = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    lv = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    obj = Elbo(meta, stack)
    for _ in range(3):
        gm, gl = torch.autograd.grad(obj(mu, lv, x), (mu, lv), create_graph=True)
        mu, lv = mu - meta["lr"] * gm, lv - meta["lr"] * gl
    return obj.terms(mu, lv, x).sum()


def meta_step(meta):
    return train(meta, False)


def meta_step_fixed(meta):
    return train(meta, True)
