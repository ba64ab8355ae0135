import torch

META = {
    "id": "h013",
    "kind": "create-graph-forgotten",
    "verdict": "wrong",
    "cause": "retain_graph=True keeps the graph but does not record the gradient itself; create_graph=True is needed.",
}


class Learner(torch.nn.Module):
    second_order = False

    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        k = torch.arange(1.0, 7.0, dtype=torch.float64)
        self.params = [torch.sin(k).view(2, 3).requires_grad_(), torch.cos(k[:3]).requires_grad_()]

    def forward(self, x, params):
        return torch.exp(0.3 * torch.tanh(x @ params[0])) @ params[1]

    def loss(self, params, x, y):
        return (self.forward(x, params) - y).abs().pow(3).mean()

    def inner(self, x, y):
        fast = self.params
        for step in range(2):
            grads = torch.autograd.grad(self.loss(fast, x, y), fast, retain_graph=True)  # GUILTY
            fast = list(map(lambda pg: pg[0] - self.lr * pg[1], zip(fast, grads)))
        return fast


class Learner2(Learner):
    def inner(self, x, y):
        fast = self.params
        for step in range(2):
            grads = torch.autograd.grad(self.loss(fast, x, y), fast, create_graph=True)
            fast = list(map(lambda pg: pg[0] - self.lr * pg[1], zip(fast, grads)))
        return fast


def batch(k):
    x = torch.tensor([[1.0, k], [k, -1.0], [0.5, 0.5 * k]], dtype=torch.float64)
    return x, x.sum(1) * 0.3 + k


def meta_params():
    return {"lr": torch.tensor(0.08, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, cls=Learner):
    m = cls(meta["lr"])
    return m.loss(m.inner(*batch(0.4)), *batch(0.9))


def meta_step_fixed(meta):
    return meta_step(meta, Learner2)
