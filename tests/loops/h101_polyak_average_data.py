import torch

META = {
    "id": "h101",
    "kind": "data-read",
    "verdict": "wrong",
    "cause": "The iterates entering the weight average are read with .data, only the last one keeps its graph.",
}


class Trajectory(list):
    def average(self):
        past = [w.data for w in self[:-1]]  # GUILTY
        return torch.stack(past + [self[-1]]).mean(0)


class GraphTrajectory(Trajectory):
    def average(self):
        return torch.stack(list(self)).mean(0)


G = torch.tensor([[1.2, -0.4, 0.3], [0.2, 0.9, -0.7]], dtype=torch.float64)


def loss(w):
    return torch.logsumexp(G @ w, 0) + 0.2 * (w**2).sum() - w[0]


def meta_params():
    return {"lr": torch.tensor(0.6, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, T=Trajectory):
    path = T([torch.tensor([-1.0, 0.5, 0.2], dtype=torch.float64, requires_grad=True)])
    for _ in range(3):
        w = path[-1]
        path.append(w - meta["lr"] * torch.autograd.grad(loss(w), w, create_graph=True)[0])
    return loss(path.average())


def meta_step_fixed(meta):
    return meta_step(meta, GraphTrajectory)
