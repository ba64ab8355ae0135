import torch
from dataclasses import dataclass

META = {
    "id": "h051",
    "kind": "number-extracted",
    "verdict": "cut",
    "cause": "The hyper-parameter record converts everything with float().",
}


@dataclass
class HParams:
    lr: object
    l2: object
    steps: int = 2

    @classmethod
    def from_meta(cls, meta):
        vals = {k: float(v) for k, v in meta.items()}  # GUILTY
        return cls(**vals)

    @classmethod
    def keep(cls, meta):
        return cls(**meta)


features = torch.tensor([[0.1, 0.7], [0.9, 0.3], [0.5, 0.5], [0.2, 0.1]], dtype=torch.float64)
counts = torch.tensor([1.0, 3.0, 2.0, 1.0], dtype=torch.float64)


def poisson_nll(beta):
    eta = features @ beta
    return (eta.exp() - counts * eta).mean()


def fit(hp):
    beta = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    for _ in range(hp.steps):
        obj = poisson_nll(beta) + hp.l2 * beta.dot(beta)
        beta = beta - hp.lr * torch.autograd.grad(obj, beta, create_graph=True)[0]
    return beta


def meta_params():
    return {
        "lr": torch.tensor(0.6, dtype=torch.float64, requires_grad=True),
        "l2": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    return poisson_nll(fit(HParams.from_meta(meta)))


def meta_step_fixed(meta):
    return poisson_nll(fit(HParams.keep(meta)))
