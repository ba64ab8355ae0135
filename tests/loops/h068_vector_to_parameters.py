import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

META = {
    "id": "h068",
    "kind": "data-write",
    "verdict": "cut",
    "cause": "vector_to_parameters writes through .data, so the flat update does not reach the module's graph.",
}


def model():
    torch.manual_seed(42)
    return nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)).double()


x = torch.tensor([[0.1, 0.9], [0.8, 0.4], [-0.6, -0.2], [0.3, -1.0]], dtype=torch.float64)
y = x[:, :1] * x[:, 1:]
mse = nn.MSELoss()


def flat_grad(loss, net):
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(net.parameters()), create_graph=True)])


def unflatten(vec, net):
    out, i = {}, 0
    for n, p in net.named_parameters():
        out[n] = vec[i : i + p.numel()].view_as(p)
        i += p.numel()
    return out


def meta_params():
    return {"lr": torch.full((21,), 0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    net = model()
    theta = parameters_to_vector(net.parameters())
    theta = theta - meta["lr"] * flat_grad(mse(net(x), y), net)
    vector_to_parameters(theta, net.parameters())  # GUILTY
    return mse(net(x.flip(1)), y)


def meta_step_fixed(meta):
    net = model()
    theta = parameters_to_vector(net.parameters())
    theta = theta - meta["lr"] * flat_grad(mse(net(x), y), net)
    return mse(torch.func.functional_call(net, unflatten(theta, net), (x.flip(1),)), y)
