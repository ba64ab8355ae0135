"""Learning to learn by gradient descent: a recurrent optimiser with its state detached every step."""

import torch
import torch.nn as nn

META = {
    "id": "h055",
    "kind": "detach",
    "verdict": "wrong",
    "cause": "The recurrent optimiser's hidden state is detached at every inner step instead of at the end of the unroll.",
}


class RecurrentRule:
    def __init__(self, rnn, read, carry=False):
        self.rnn, self.read, self.carry = rnn, read, carry
        self.state = torch.zeros(3, 2, dtype=torch.float64)

    def propose(self, g):
        z = torch.cat([g[:, None], self.state], 1)
        new = torch.tanh(z @ self.rnn)
        self.state = new if self.carry else new.detach()  # GUILTY
        return new @ self.read


def f(x):
    return (x**2 * torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)).sum() + torch.cos(3 * x).sum()


def meta_params():
    return {
        "rnn": torch.tensor([[0.3, -0.2], [0.8, 0.1], [-0.4, 0.9]], dtype=torch.float64, requires_grad=True),
        "read": torch.tensor([-0.4, 0.3], dtype=torch.float64, requires_grad=True),
    }


def unroll(meta, carry, T=5):
    opt = RecurrentRule(meta["rnn"], meta["read"], carry)
    x = torch.tensor([0.7, -0.4, 1.0], dtype=torch.float64, requires_grad=True)
    losses = []
    for t in range(T):
        val = f(x)
        losses.append(val)
        g = torch.autograd.grad(val, x, create_graph=True)[0]
        x = x + opt.propose(g)
    return torch.stack(losses).sum()


def meta_step(meta):
    return unroll(meta, False)


def meta_step_fixed(meta):
    return unroll(meta, True)
