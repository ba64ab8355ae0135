"""How far one inner step reaches: rate times curvature, the number on which it hangs whether a run explodes.

On the loss ½ h (w - c)² a step multiplies w - c by 1 - rate·h. Above rate·h = 2 that is more than one in size: each
step overshoots by more than it began with. On any other loss the same holds near the weights, with the Hessian's
largest eigenvalue for h.
"""

import torch

from metalib.problems import PROBLEMS, Batch, Task, Weights
from metalib.settings import Settings
from metalib.tasks import place
from metalib.unroll import fresh_leaves


def reach(problem, weights: Weights, rates: Weights, batch: Batch, iterations: int = 60) -> float:
    """The largest eigenvalue of rates · Hessian of the inner loss at the weights, by power iteration in float64.

    `rates` holds the rate of each weight tensor. It is made symmetric as √rates · Hessian · √rates, which has the same
    eigenvalues. nan where the loss has no finite Hessian there.
    """
    weights, batch = (place(tree, "cpu", torch.float64) for tree in (weights, batch))
    leaves, generator = fresh_leaves(weights), torch.Generator().manual_seed(0)
    roots = [torch.as_tensor(rates[name]).detach().cpu().double().sqrt() for name in leaves]
    gradients = torch.autograd.grad(problem.loss(leaves, batch), list(leaves.values()), create_graph=True)
    curved = [at for at, g in enumerate(gradients) if g.requires_grad]  # the others are constants
    if not curved:
        return 0.0
    v = [torch.randn(w.shape, dtype=torch.float64, generator=generator) for w in leaves.values()]
    largest = torch.tensor(0.0)
    for _ in range(iterations):
        size = sum((x**2).sum() for x in v).sqrt()
        v = [x / size for x in v]
        u = [root * x for root, x in zip(roots, v, strict=True)]
        products = torch.autograd.grad(
            [gradients[at] for at in curved],
            list(leaves.values()),
            [u[at] for at in curved],
            retain_graph=True,
            materialize_grads=True,
        )
        products = [root * p for root, p in zip(roots, products, strict=True)]
        largest = sum((x * p).sum() for x, p in zip(v, products, strict=True))
        if not largest.isfinite() or not any(p.any() for p in products):
            break
        v = products
    return largest.item()


def edge(settings: Settings, weights: Weights, rates: Weights, task: Task) -> str:
    """A sentence on the first inner step: rate times curvature there, and what it means."""
    found = reach(PROBLEMS[settings.problem], weights, rates, task.inner[0])
    start = f"At the first inner step rate times curvature was {found:.3g}"
    if found > 2:
        return f"{start}: above 2 each step overshoots by more than it began with"
    return f"{start}, not above 2: it exploded later"
