import torch

META = {
    "id": "h085",
    "kind": "data-write",
    "verdict": "wrong",
    "cause": "Element-wise clipping through g.data changes the numbers but not the graph of the gradient.",
}


def clip_value(grads, c):
    for g in grads:
        g.data.clamp_(-c, c)  # GUILTY
    return grads


def clip_value_ok(grads, c):
    return [g.clamp(-c, c) for g in grads]


W0 = [[[0.9, -1.4, 0.2], [0.5, 0.3, -0.8]], [[1.2], [-0.6], [0.4]]]
x = torch.tensor([[2.0, -1.0], [0.5, 1.5], [-1.2, 0.4]], dtype=torch.float64)
y = torch.tensor([[3.0], [-2.0], [0.5]], dtype=torch.float64)


def obj(ws):
    return (torch.tanh(x @ ws[0]) @ ws[1] - y).pow(2).mean()


def meta_params():
    return {"eta": torch.tensor([0.3, 0.2], dtype=torch.float64, requires_grad=True)}


def meta_step(meta, clip=clip_value):
    ws = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in W0]
    for _ in range(2):
        gs = clip(list(torch.autograd.grad(obj(ws), ws, create_graph=True)), 0.4)
        ws = [w - e * g for w, e, g in zip(ws, meta["eta"], gs)]
    return obj(ws)


def meta_step_fixed(meta):
    return meta_step(meta, clip_value_ok)
