import torch

META = {
    "id": "o04",
    "kind": "optimizer-holds-copies",
    "cause": "The optimiser is built from clones of the meta-parameters; the originals that get the gradient never move.",
}


def make_meta():
    return {"lr": torch.tensor(0.1, requires_grad=True), "init": torch.tensor([0.5, -0.5], requires_grad=True)}


def episode(meta):
    f = lambda w: (w.exp() - torch.tensor([2.0, 0.5])).pow(2).sum()
    w = meta["init"]
    for _ in range(2):
        w = w - meta["lr"] * torch.autograd.grad(f(w), w, create_graph=True)[0]
    return f(w)


def train(params_of):
    meta = make_meta()
    opt = torch.optim.Adam(params_of(meta), lr=0.05)
    out = []
    for _ in range(5):
        opt.zero_grad()
        l = episode(meta)
        l.backward()
        opt.step()
        out.append(l.item())
    return out, meta["lr"].item()


def run():
    return train(lambda m: [v.detach().clone().requires_grad_() for v in m.values()])  # GUILTY


def run_fixed():
    return train(lambda m: list(m.values()))
