import torch
import torch.nn as nn

META = {
    "id": "h007",
    "kind": "state-dict",
    "verdict": "cut",
    "cause": "load_state_dict copies numbers under no_grad; the adapted weights lose their graph.",
}


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 4), nn.Softplus())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


class MetaTrainer:
    def __init__(self, lr):
        torch.manual_seed(100)
        self.lr = lr
        self.net = Regressor().double()
        self.x = torch.rand(8, 2).double()
        self.y = self.x.prod(-1) * 3

    def support_loss(self):
        return nn.functional.mse_loss(self.net(self.x[:4]), self.y[:4])

    def adapt(self):
        names, ps = zip(*self.net.named_parameters())
        gs = torch.autograd.grad(self.support_loss(), ps, create_graph=True)
        return {n: p - self.lr * g for n, p, g in zip(names, ps, gs)}

    def query(self, fast):
        self.net.load_state_dict(fast)  # GUILTY
        return nn.functional.mse_loss(self.net(self.x[4:]), self.y[4:])


class FixedTrainer(MetaTrainer):
    def query(self, fast):
        pred = torch.func.functional_call(self.net, fast, (self.x[4:],))
        return nn.functional.mse_loss(pred, self.y[4:])


def meta_params():
    return {"lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, T=MetaTrainer):
    tr = T(meta["lr"])
    return tr.query(tr.adapt())


def meta_step_fixed(meta):
    return meta_step(meta, FixedTrainer)
