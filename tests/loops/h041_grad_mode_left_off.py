import torch

META = {
    "id": "h041",
    "kind": "grad-mode",
    "verdict": "cut",
    "cause": "Gradient recording is switched off for the accuracy and switched on again too late, after the update.",
}

x = torch.tensor([[1.0, 0.2], [0.3, -1.0], [-0.6, 0.5], [0.8, 0.8]], dtype=torch.float64)
lab = torch.tensor([0, 1, 1, 0])


class Trainer:
    def __init__(self, meta, careful=False):
        self.lr = meta["lr"]
        self.careful = careful
        self.acc = []
        self.W = torch.tensor([[0.2, -0.1], [0.5, 0.3]], dtype=torch.float64, requires_grad=True)

    def accuracy(self):
        torch.set_grad_enabled(False)  # GUILTY
        hit = (x @ self.W).argmax(1).eq(lab).double().mean()
        self.acc.append(hit.item())
        if self.careful:
            torch.set_grad_enabled(True)

    def step(self):
        loss = torch.nn.functional.cross_entropy(x @ self.W, lab)
        (g,) = torch.autograd.grad(loss, self.W, create_graph=True)
        self.accuracy()
        self.W = (self.W - self.lr * g).requires_grad_()
        torch.set_grad_enabled(True)

    def query(self):
        return torch.nn.functional.cross_entropy(x.flip(1) @ self.W, lab)


def meta_params():
    return {"lr": torch.tensor(1.0, dtype=torch.float64, requires_grad=True)}


def _run(meta, careful):
    t = Trainer(meta, careful)
    t.step()
    t.step()
    return t.query()


def meta_step(meta):
    return _run(meta, False)


def meta_step_fixed(meta):
    return _run(meta, True)
