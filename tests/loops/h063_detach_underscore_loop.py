import torch

META = {
    "id": "h063",
    "kind": "detach",
    "verdict": "wrong",
    "cause": "detach_() at the top of the inner loop cuts all but the last step.",
}

X = torch.tensor([[0.5, 0.1, -1.0], [0.9, -0.3, 0.4], [-0.2, 0.8, 0.6], [0.1, 0.1, 0.9]])
T = torch.tensor([2, 0, 1, 2])


def ce(W):
    return torch.nn.functional.cross_entropy(torch.relu(X @ W[0] + 0.1) @ W[1], T)


def inner_loop(lr, K, cut):
    torch.manual_seed(10)
    W = [torch.randn(3, 4), torch.randn(4, 3)]
    for k in range(K):
        for w in W:
            if cut:
                w.detach_()  # GUILTY
            w.requires_grad_()
        grads = torch.autograd.grad(ce(W), W, create_graph=True)
        W = [w - lr * g for w, g in zip(W, grads)]
    return W


def meta_params():
    return {"lr": torch.tensor(0.8, requires_grad=True)}


def meta_step(meta):
    return ce(inner_loop(meta["lr"], 3, True))


def meta_step_fixed(meta):
    return ce(inner_loop(meta["lr"], 3, False))
