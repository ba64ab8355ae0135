"""The bias rate has no influence: the outer loss is invariant to a shift of the logits."""

import torch

META = {"id": "r08", "kind": "true zero", "verdict": "right", "zero_ok": ["shift_lr"]}

X = torch.tensor([[0.5, 1.0], [-0.2, 0.4], [0.9, -1.0]], dtype=torch.float64)
lab = torch.tensor([2, 0, 1])


def xent(W, shift, x):
    return torch.nn.functional.cross_entropy(x @ W + shift, lab)


def meta_params():
    return {
        "lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
        "shift_lr": torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    W = torch.tensor([[0.1, 0.2, -0.3], [0.4, 0.0, 0.1]], dtype=torch.float64, requires_grad=True)
    shift = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        gW, gs = torch.autograd.grad(xent(W, shift, X) + 0.1 * shift**2, (W, shift), create_graph=True)
        W, shift = W - meta["lr"] * gW, shift - meta["shift_lr"] * gs
    return xent(W, shift, X + 0.1)
