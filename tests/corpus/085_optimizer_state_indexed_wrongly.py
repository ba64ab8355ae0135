"""The offset into the learned optimizer's hidden state is never advanced, so all layers share and overwrite the first
rows.
"""

import torch

META = {
    "title": "offset variable has not been updated",
    "source": "https://github.com/AdrienLE/learning_by_grad_by_grad_repro/issues/2",
    "kind": "state-indexing",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def go(advance):
    hidden = torch.zeros(6)
    offset = 0
    for size in (2, 4):
        hidden[offset : offset + size] += torch.ones(size)  # GUILTY
        if advance:
            offset += size
    return {"hidden": hidden.tolist()}


def run():
    return go(False)


def run_fixed():
    return go(True)
