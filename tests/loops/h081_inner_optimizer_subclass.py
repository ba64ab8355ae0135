import torch

META = {
    "id": "h081",
    "kind": "optimizer-step",
    "verdict": "cut",
    "cause": "A torch.optim.Optimizer subclass updates parameters under no_grad; the tensor rate in it gets no gradient.",
}


class TensorLRSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()  # GUILTY
    def step(self):  # ALSO
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(-group["lr"] * p.grad)  # ALSO


def kinetics(k, t=torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64)):
    conc = torch.exp(-k[0].abs() * t) + k[1] * t
    return (conc - torch.tensor([1.0, 0.7, 0.6, 0.3], dtype=torch.float64)).square().sum()


def meta_params():
    return {"lr": torch.tensor(0.03, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    k = torch.nn.Parameter(torch.tensor([0.2, 0.1], dtype=torch.float64))
    opt = TensorLRSGD([k], lr=meta["lr"])
    for _ in range(5):
        opt.zero_grad()
        kinetics(k).backward(inputs=[k])
        opt.step()
    return kinetics(k)


def meta_step_fixed(meta):
    k = torch.tensor([0.2, 0.1], dtype=torch.float64, requires_grad=True)
    for _ in range(5):
        (g,) = torch.autograd.grad(kinetics(k), k, create_graph=True)
        k = k - meta["lr"] * g
    return kinetics(k)
