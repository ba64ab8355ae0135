import torch

META = {
    "id": "h016",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "w.sub_(...) overwrites a weight that the inner gradient's graph saved for backward.",
}

inp = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], dtype=torch.float64)
out = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


class MLP:
    def __init__(self, inplace=True):
        self.inplace = inplace
        self.layers = {
            "in": (torch.ones(3, 3, dtype=torch.float64) * 0.2 + torch.eye(3, dtype=torch.float64))
            .requires_grad_()
            .clone(),
            "out": torch.tensor([[0.4], [-0.8], [0.6]], dtype=torch.float64, requires_grad=True).clone(),
        }

    def __call__(self, x):
        return torch.sigmoid(x @ self.layers["in"]) @ self.layers["out"]

    def fit(self, x, y, lr, n):
        for _ in range(n):
            loss = ((self(x) - y) ** 2).mean()
            grads = torch.autograd.grad(loss, [self.layers["in"], self.layers["out"]], create_graph=True)
            for key, g in zip(("in", "out"), grads):
                if self.inplace:
                    self.layers[key].sub_(lr * g)  # GUILTY
                else:
                    self.layers[key] = self.layers[key].sub(lr * g)
        return self


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    model = MLP().fit(inp, out, meta["lr"], 2)
    return (model(inp.flip(1)) - out).pow(2).mean()


def meta_step_fixed(meta):
    model = MLP(inplace=False).fit(inp, out, meta["lr"], 2)
    return (model(inp.flip(1)) - out).pow(2).mean()
