import torch
from torch import nn

META = {
    "id": "h004",
    "kind": "data-write",
    "verdict": "cut",
    "cause": "set_weights copies the adapted values into .data of the module, so the query loss sees constants.",
}

torch.manual_seed(0)
DATA = torch.randn(12, 3).double()
LABEL = (DATA[:, :1] * DATA[:, 1:2] > 0).double()
SEED_STATE = {k: v.double() for k, v in nn.Sequential(nn.Linear(3, 5), nn.ELU(), nn.Linear(5, 1)).state_dict().items()}


def make_model():
    m = nn.Sequential(nn.Linear(3, 5), nn.ELU(), nn.Linear(5, 1)).double()
    m.load_state_dict(SEED_STATE)
    return m


def set_weights(model, tensors):
    for p, t in zip(model.parameters(), tensors):
        p.data.copy_(t)  # GUILTY


bce = nn.BCEWithLogitsLoss()


def meta_params():
    return {"log_lr": torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    model = make_model()
    lr = meta["log_lr"].exp()
    inner = bce(model(DATA[:6]), LABEL[:6])
    g = torch.autograd.grad(inner, list(model.parameters()), create_graph=True)
    set_weights(model, [p - lr * gi for p, gi in zip(model.parameters(), g)])
    return bce(model(DATA[6:]), LABEL[6:])


def meta_step_fixed(meta):
    model = make_model()
    lr = meta["log_lr"].exp()
    inner = bce(model(DATA[:6]), LABEL[:6])
    g = torch.autograd.grad(inner, list(model.parameters()), create_graph=True)
    new = {n: p - lr * gi for (n, p), gi in zip(model.named_parameters(), g)}
    return bce(torch.func.functional_call(model, new, (DATA[6:],)), LABEL[6:])
