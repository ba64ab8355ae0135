import torch
from torch import nn
from torch.func import functional_call

META = {"id": "r18", "kind": "functional_call with tied weights", "verdict": "right"}


class TinyLM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, vocab, bias=False)
        self.out.weight = self.emb.weight

    def forward(self, idx):
        return self.out(torch.tanh(self.mix(self.emb(idx).mean(1))))


def meta_params():
    return {"lr": torch.tensor(0.3, dtype=torch.float64, requires_grad=True)}


def meta_step(meta):
    torch.manual_seed(20)
    lm = TinyLM(6, 3).double()
    ctx, nxt = torch.tensor([[0, 1], [2, 3], [4, 1]]), torch.tensor([2, 5, 0])
    p = dict(lm.named_parameters())
    assert "out.weight" not in p
    for _ in range(2):
        g = torch.autograd.grad(
            nn.functional.cross_entropy(functional_call(lm, p, (ctx,)), nxt), list(p.values()), create_graph=True
        )
        p = {k: v - meta["lr"] * gi for (k, v), gi in zip(p.items(), g)}
    return nn.functional.cross_entropy(functional_call(lm, p, (ctx.flip(0),)), nxt)
