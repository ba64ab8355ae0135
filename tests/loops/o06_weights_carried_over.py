import torch

META = {
    "id": "o06",
    "kind": "graph-carried-over",
    "raises": True,
    "cause": "Online training keeps the adapted weights of the last outer step with their freed graph.",
}


class OnlineLearner:
    """Weights live on through the outer loop; the rate is tuned every 2 inner steps."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.w = [
            torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
            torch.randn(4, 1, dtype=torch.float64, requires_grad=True),
        ]
        self.x = torch.randn(10, 3, dtype=torch.float64)
        self.y = torch.randn(10, 1, dtype=torch.float64)

    def loss(self, w):
        return (torch.tanh(self.x @ w[0]) @ w[1] - self.y).pow(2).mean()

    def unroll(self, lr, k=2):
        w = self.w
        for _ in range(k):
            w = [a - lr * g for a, g in zip(w, torch.autograd.grad(self.loss(w), w, create_graph=True))]
        self.keep(w)
        return self.loss(w)

    def keep(self, w):
        self.w = w  # GUILTY


class Fixed(OnlineLearner):
    def keep(self, w):
        self.w = [a.detach().requires_grad_() for a in w]


def run(cls=OnlineLearner):
    lr = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.SGD([lr], lr=0.01)
    learner = cls()
    vals = []
    for _ in range(4):
        opt.zero_grad()
        out = learner.unroll(lr)
        out.backward()
        opt.step()
        vals.append(out.item())
    return vals


def run_fixed():
    return run(Fixed)
