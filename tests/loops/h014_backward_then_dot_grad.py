import torch

META = {
    "id": "h014",
    "kind": "create-graph-forgotten",
    "verdict": "wrong",
    "cause": "loss.backward() fills .grad with constants; without create_graph the rate is only seen to first order.",
}

pts = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
lab = torch.tensor([0, 1, 1, 0])


def net(ws, p):
    h = p
    for w in ws[:-1]:
        h = torch.tanh(h @ w)
    return h @ ws[-1]


def start():
    torch.manual_seed(4)
    return [
        torch.randn(2, 3, dtype=torch.float64).requires_grad_(),
        torch.randn(3, 3, dtype=torch.float64).requires_grad_(),
        torch.randn(3, 2, dtype=torch.float64).requires_grad_(),
    ]


def meta_params():
    return {"lr": torch.tensor(0.6, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    ws = start()
    for it in range(3):
        for w in ws:
            w.retain_grad()
            w.grad = None
        loss = torch.nn.functional.cross_entropy(net(ws, pts), lab)
        loss.backward(inputs=ws, retain_graph=True)  # GUILTY
        ws = [w - meta["lr"] * w.grad for w in ws]
    return torch.nn.functional.cross_entropy(net(ws, pts + 0.3), lab)


def meta_step_fixed(meta):
    ws = start()
    for it in range(3):
        loss = torch.nn.functional.cross_entropy(net(ws, pts), lab)
        gs = torch.autograd.grad(loss, ws, create_graph=True)
        ws = [w - meta["lr"] * g for w, g in zip(ws, gs)]
    return torch.nn.functional.cross_entropy(net(ws, pts + 0.3), lab)
