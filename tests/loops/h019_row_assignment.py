import torch

META = {
    "id": "h019",
    "kind": "inplace-on-saved-tensor",
    "verdict": "raises",
    "cause": "Writing the updated row back with table[i] = ... changes a tensor that earlier steps saved.",
}

prefs = torch.tensor([[1.0, 0.2, 0.7], [0.4, 0.9, 0.1]], dtype=torch.float64)


def fit_error(users, items):
    return ((torch.sigmoid(users @ items.t()) - prefs) ** 2).sum() + 0.1 * (items**4).sum()


def meta_params():
    return {
        "rate": torch.tensor(2.0, dtype=torch.float64, requires_grad=True),
        "item_init": torch.tensor([[0.3, -0.1], [0.2, 0.5], [-0.4, 0.6]], dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    items = meta["item_init"] * 1.0
    users = torch.tensor([[0.1, 0.4], [-0.3, 0.2]], dtype=torch.float64)
    for row in (0, 2, 1):
        g = torch.autograd.grad(fit_error(users, items), items, create_graph=True)[0]
        items[row] = items[row] - meta["rate"] * g[row]  # GUILTY
    return fit_error(users.flip(0), items)


def meta_step_fixed(meta):
    items = meta["item_init"] * 1.0
    users = torch.tensor([[0.1, 0.4], [-0.3, 0.2]], dtype=torch.float64)
    for row in (0, 2, 1):
        g = torch.autograd.grad(fit_error(users, items), items, create_graph=True)[0]
        items = torch.stack([items[r] - meta["rate"] * g[r] if r == row else items[r] for r in range(3)])
    return fit_error(users.flip(0), items)
