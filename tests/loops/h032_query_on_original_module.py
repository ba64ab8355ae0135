import torch
from torch import nn
from torch.func import functional_call

META = {
    "id": "h032",
    "kind": "stale-module-weights",
    "verdict": "independent",
    "cause": "The query loss calls the module itself, not functional_call with the adapted parameters.",
}


class Classifier(nn.Module):
    def __init__(self, d_in, n_cls):
        super().__init__()
        self.enc = nn.GRUCell(d_in, 5)
        self.cls = nn.Linear(5, n_cls)

    def forward(self, seq):
        h = seq.new_zeros(seq.shape[1], 5)
        for x in seq:
            h = self.enc(x, h)
        return self.cls(h)


class Episode:
    def __init__(self):
        torch.manual_seed(31)
        self.model = Classifier(3, 2).double()
        self.sx, self.sy = torch.randn(4, 6, 3).double(), torch.tensor([0, 1, 0, 1, 1, 0])
        self.qx, self.qy = torch.randn(4, 5, 3).double(), torch.tensor([1, 1, 0, 1, 0])

    def adapt(self, lr):
        params = {n: p for n, p in self.model.named_parameters()}
        for _ in range(2):
            l = nn.functional.cross_entropy(functional_call(self.model, params, self.sx), self.sy)
            grads = torch.autograd.grad(l, params.values(), create_graph=True)
            params = {n: p - lr * g for (n, p), g in zip(params.items(), grads)}
        return params

    def evaluate(self, params):
        logits = self.model(self.qx)  # GUILTY
        return nn.functional.cross_entropy(logits, self.qy)


class EpisodeFixed(Episode):
    def evaluate(self, params):
        logits = functional_call(self.model, params, self.qx)
        return nn.functional.cross_entropy(logits, self.qy)


def meta_params():
    return {"lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, E=Episode):
    ep = E()
    return ep.evaluate(ep.adapt(meta["lr"]))


def meta_step_fixed(meta):
    return meta_step(meta, EpisodeFixed)
