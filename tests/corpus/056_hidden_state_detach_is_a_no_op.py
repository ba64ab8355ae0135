"""h.detach() returns a new tensor; without assigning it, the learned optimizer's hidden state still points into the
last unroll.
"""

import torch

META = {
    "title": "issue with detach() (h.detach_() replaced by h.detach() does nothing)",
    "source": "https://github.com/OpenNMT/OpenNMT-py/issues/403",
    "kind": "graph-carried-over",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def outer(assign):
    torch.manual_seed(0)
    rnn = torch.nn.LSTMCell(1, 1).double()
    opt = torch.optim.SGD(rnn.parameters(), lr=0.01)
    h, c = torch.zeros(2, 1, dtype=D), torch.zeros(2, 1, dtype=D)
    for _ in range(2):
        w = torch.tensor([[0.3], [-0.2]], dtype=D, requires_grad=True)
        (g,) = torch.autograd.grad(((X @ w - Y) ** 2).mean(), w)
        if assign:
            h, c = h.detach(), c.detach()
        else:
            h.detach()  # GUILTY
            c.detach()
        h, c = rnn(g, (h, c))
        opt.zero_grad()
        ((X @ (w - 0.1 * h) - Y) ** 2).mean().backward()
        opt.step()
    return float(rnn.bias_ih.detach().sum())


def run():
    return {"bias": outer(False)}


def run_fixed():
    return {"bias": outer(True)}
