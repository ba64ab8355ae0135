import torch

META = {
    "id": "h092",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "Hidden states are written into a preallocated tensor, which bumps the version of rows saved for backward.",
}


class Scan:
    def __init__(self, T, n):
        self.T, self.n = T, n

    def hidden(self, W, drive):
        H = torch.zeros(self.T + 1, self.n, dtype=drive.dtype)
        for k in range(self.T):
            H[k + 1] = torch.tanh(H[k] @ W + drive[k])  # GUILTY
        return H[1:]


class ListScan(Scan):
    def hidden(self, W, drive):
        h, hs = torch.zeros(self.n, dtype=drive.dtype), []
        for k in range(self.T):
            h = torch.tanh(h @ W + drive[k])
            hs.append(h)
        return torch.stack(hs)


drive = torch.sin(torch.arange(10, dtype=torch.float64)).view(5, 2)


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, S=Scan):
    net = S(5, 2)
    W = torch.tensor([[0.5, -0.3], [0.2, 0.4]], dtype=torch.float64, requires_grad=True)
    energy = lambda W: (net.hidden(W, drive) - drive.flip(1)).pow(2).mean()
    for _ in range(2):
        W = W - meta["lr"] * torch.autograd.grad(energy(W), W, create_graph=True)[0]
    return energy(W)


def meta_step_fixed(meta):
    return meta_step(meta, ListScan)
