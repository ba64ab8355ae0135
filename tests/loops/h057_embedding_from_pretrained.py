import torch
import torch.nn as nn
import torch.nn.functional as F

META = {
    "id": "h057",
    "kind": "parameter-rewrap",
    "verdict": "cut",
    "cause": "nn.Embedding.from_pretrained wraps the adapted table in a new Parameter.",
}

tokens = torch.tensor([[0, 2, 1], [3, 3, 0], [1, 2, 3]])
goal = torch.tensor([0.5, -1.0, 1.0], dtype=torch.float64)
read = torch.tensor([1.0, -0.5], dtype=torch.float64)


def lookup_module(table, idx):
    emb = nn.Embedding.from_pretrained(table, freeze=False)  # GUILTY
    return emb(idx)


def lookup_functional(table, idx):
    return F.embedding(idx, table)


def bag_loss(table, lookup):
    vec = lookup(table, tokens).mean(1)
    return F.smooth_l1_loss(torch.tanh(vec) @ read, goal)


def meta_params():
    return {"eta": torch.tensor(2.0, dtype=torch.float64, requires_grad=True)}


def meta_step(meta, final_lookup=lookup_module):
    table = torch.linspace(-1, 1, 8, dtype=torch.float64).view(4, 2).requires_grad_()
    for _ in range(2):
        g = torch.autograd.grad(bag_loss(table, lookup_functional), table, create_graph=True)[0]
        table = table - meta["eta"] * g
    return bag_loss(table, final_lookup)


def meta_step_fixed(meta):
    return meta_step(meta, lookup_functional)
