import torch

META = {
    "id": "h075",
    "kind": "nan-log-zero",
    "verdict": "nan",
    "cause": "p * log(p) is evaluated at p exactly zero in the outer entropy bonus.",
}


def sparse_probs(logits):
    p = torch.relu(logits)
    return p / p.sum(-1, keepdim=True)


def entropy(p):
    return -(p * torch.log(p)).sum(-1).mean()  # GUILTY


def entropy_ok(p):
    return -(p * torch.log(p + 1e-9)).sum(-1).mean()


S = torch.tensor([[1.0, 0.5], [0.2, 1.0]], dtype=torch.float64)
A = torch.tensor([0, 1])


def meta_params():
    return {
        "lr": torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
        "bonus": torch.tensor(0.01, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta, entropy=entropy):
    W = torch.tensor([[1.0, 0.5, -1.0], [0.3, 0.9, -2.0]], dtype=torch.float64, requires_grad=True)

    def loss(W):
        return -sparse_probs(S @ W).gather(1, A[:, None]).log().mean()

    for _ in range(2):
        W = W - meta["lr"] * torch.autograd.grad(loss(W), W, create_graph=True)[0]
    return loss(W) - meta["bonus"] * entropy(sparse_probs(S @ W))


def meta_step_fixed(meta):
    return meta_step(meta, entropy_ok)
