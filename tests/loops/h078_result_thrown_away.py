import torch

META = {
    "id": "h078",
    "kind": "result-dropped",
    "verdict": "independent",
    "cause": "The adapted weights returned by adapt() are not used; the outer loss sees the old ones.",
}


class Maml(torch.nn.Module):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.theta = torch.nn.ParameterList(
            [torch.full((2, 2), 0.3, dtype=torch.float64), torch.tensor([0.4, -0.9], dtype=torch.float64)]
        )

    def net(self, th, x):
        return torch.nn.functional.elu(x @ th[0]) @ th[1]

    def loss(self, th, x, y):
        return torch.nn.functional.huber_loss(self.net(th, x), y)

    def adapt(self, x, y):
        th = [t + 0 for t in self.theta]
        g = torch.autograd.grad(self.loss(th, x, y), th, create_graph=True)
        return [t - self.lr * gi for t, gi in zip(th, g)]


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


x = torch.tensor([[1.0, -0.5], [0.6, 2.0], [-1.0, 0.7]], dtype=torch.float64)
y = torch.tensor([0.1, 0.9, -0.8], dtype=torch.float64)


def meta_step(meta):
    m = Maml(meta["lr"])
    theta = list(m.theta)
    m.adapt(x, y)  # GUILTY
    return m.loss(theta, x + 0.1, y)


def meta_step_fixed(meta):
    m = Maml(meta["lr"])
    theta = list(m.theta)
    theta = m.adapt(x, y)
    return m.loss(theta, x + 0.1, y)
