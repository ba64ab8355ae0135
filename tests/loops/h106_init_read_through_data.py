import torch

META = {
    "id": "h106",
    "kind": "data-read",
    "verdict": "cut",
    "params": ["theta"],
    "cause": "The inner loop starts from theta.data.clone(): the learned initialisation is only copied.",
}


class Reptileish:
    def __init__(self, meta):
        self.theta = meta["theta"]
        self.log_lr = meta["log_lr"]

    def start(self):
        return self.theta.data.clone().requires_grad_(True)  # GUILTY

    def loss(self, w, amp):
        t = torch.linspace(0, 3, 7, dtype=w.dtype)
        return (w[0] * torch.sin(w[1] * t + w[2]) - amp * torch.sin(t)).pow(2).mean()

    def episode(self, amp):
        w = self.start()
        for _ in range(3):
            w = w - self.log_lr.exp() * torch.autograd.grad(self.loss(w, amp), w, create_graph=True)[0]
        return self.loss(w, amp)


class MamlReally(Reptileish):
    def start(self):
        return self.theta.clone()


def meta_params():
    return {
        "theta": torch.tensor([0.8, 1.2, 0.1], dtype=torch.float64, requires_grad=True),
        "log_lr": torch.tensor(-1.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, R=Reptileish):
    r = R(meta)
    return sum(r.episode(a) for a in (0.5, 1.5))


def meta_step_fixed(meta):
    return meta_step(meta, MamlReally)
