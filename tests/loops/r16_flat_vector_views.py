import torch

META = {"id": "r16", "kind": "view/reshape games", "verdict": "right"}

SHAPES = [(2, 3), (3,), (3, 1)]


def split(flat):
    sizes = [torch.Size(s).numel() for s in SHAPES]
    return [c.reshape(s) for c, s in zip(torch.split(flat, sizes), SHAPES)]


def loss(flat, x, y):
    a, b, c = split(flat)
    return (torch.relu(x @ a + b).matmul(c).squeeze(-1) - y).square().mean()


def meta_params():
    g = torch.Generator().manual_seed(6)
    return {
        "theta": torch.randn(12, generator=g, dtype=torch.float64).requires_grad_(),
        "lr": torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True),
    }


def meta_step(meta):
    x = torch.tensor([[0.3, 0.9], [-0.5, 0.2], [1.1, -0.8], [0.4, 0.4]], dtype=torch.float64)
    y = x.prod(1)
    rates = torch.repeat_interleave(meta["lr"], torch.tensor([6, 3, 3]))
    flat = meta["theta"].view(3, 4).t().contiguous().view(-1)
    for _ in range(2):
        flat = flat - rates * torch.autograd.grad(loss(flat, x, y), flat, create_graph=True)[0]
    return loss(flat, x.flip(0), y)
