import torch

META = {
    "id": "h005",
    "kind": "detach",
    "verdict": "wrong",
    "cause": "The tidy-up helper detaches the gradients, so the second-order terms in the rates are lost.",
}

t = torch.float64
S = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.4, 0.5], [0.7, 0.6]], dtype=t)
target = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=t)


def logits(theta, z):
    hid = torch.sigmoid(z @ theta[0])
    return (hid @ theta[1]).squeeze(-1)


def nll(theta, z, y):
    return torch.nn.functional.binary_cross_entropy_with_logits(logits(theta, z), y)


def sanitize(grads, clean=True):
    """Replace NaN so that one bad task does not kill the run."""
    out = []
    for g in grads:
        if clean:
            g = g.detach()  # GUILTY
        out.append(torch.where(torch.isnan(g), torch.zeros_like(g), g))
    return out


def adapt(theta, lr, n, clean):
    for _ in range(n):
        grads = torch.autograd.grad(nll(theta, S, target), theta, create_graph=True)
        theta = [a - lr[i] * g for i, (a, g) in enumerate(zip(theta, sanitize(grads, clean)))]
    return theta


def fresh():
    return [
        torch.tensor([[0.5, -1.0], [1.0, 0.3]], dtype=t, requires_grad=True),
        torch.tensor([[1.5], [-0.7]], dtype=t, requires_grad=True),
    ]


def meta_params():
    return {"lrs": torch.tensor([1.0, 0.8], dtype=t, requires_grad=True)}


def meta_step(meta):
    th = adapt(fresh(), meta["lrs"], 3, True)
    return nll(th, S.flip(1), target)


def meta_step_fixed(meta):
    th = adapt(fresh(), meta["lrs"], 3, False)
    return nll(th, S.flip(1), target)
