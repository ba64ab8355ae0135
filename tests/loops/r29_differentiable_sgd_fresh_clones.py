import torch

META = {"id": "r29", "kind": "torch.optim differentiable=True, one step on clones", "verdict": "right"}


def loss(ws):
    x = torch.tensor([[1.0, -0.4], [0.3, 0.9], [-0.8, 0.2]], dtype=torch.float64)
    return (torch.tanh(x @ ws[0]) @ ws[1] - x.sum(1)).pow(2).mean()


def meta_params():
    return {"lr": torch.tensor(0.2, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    ws = [
        torch.tensor([[0.5, 0.1], [-0.2, 0.6]], dtype=torch.float64, requires_grad=True),
        torch.tensor([0.9, -0.3], dtype=torch.float64, requires_grad=True),
    ]
    for _ in range(2):
        grads = torch.autograd.grad(loss(ws), ws, create_graph=True)
        fresh = [w.clone() for w in ws]
        opt = torch.optim.SGD(fresh, lr=meta["lr"], differentiable=True)
        for f, g in zip(fresh, grads):
            f.grad = g
        opt.step()
        ws = fresh
    return loss(ws)
