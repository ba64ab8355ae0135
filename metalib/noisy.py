"""What noise does to the best constant rate: two expected outer losses, in closed form. Plain numbers, no autograd."""

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache
def one_weight_rate(points: int, inner_steps: int) -> float:
    """The rate that minimises E[m (1 - 2 m rate)^(2K)], where m is the mean of so many squared N(0, 1) numbers.

    On one batch the best rate is 1 / (2m), about 0.5. Over fresh batches of n points, n·m follows a χ² law with n
    degrees of freedom. For K = 1 its moments give n / (2n + 8). More steps make the best rate smaller: a batch with a
    large m punishes a high rate with the power 2K.

    Computed as the zero of d/d rate ∫ m (1 - 2 m rate)^(2K) p(m) dm, by bisection on a sum over a fine grid of m. The
    terms are m to the power n/2 + 2K at most, times exp(-n m / 2): with many steps they peak far outside of p, so the
    grid reaches forty standard deviations beyond that peak, and the sum is taken over logarithms.
    """
    power = points / 2 + 2 * inner_steps
    m = torch.linspace(0, 2 / points * (power + 40 * power**0.5), 4_001, dtype=torch.float64)[1:]
    log_weight = (points / 2 + 1) * m.log() - points * m / 2  # of m² p(m), but for a constant
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        left = 1 - 2 * m * rate
        size = log_weight + (2 * inner_steps - 1) * left.abs().log()
        slope = -(left.sign() * (size - size.max()).exp()).sum().item()
        low, high = (rate, high) if slope < 0 else (low, rate)
    return low


def expected_loss(
    rate: Tensor, inner_steps: int, curvatures: tuple[float, ...], starts: tuple[float, ...], noise: float
) -> Tensor:
    """E[½ Σ h w²] after K steps w ← w - rate · h (w - y), where y is drawn anew in each step with variance noise² / h.

    A step turns the second moment E[w²] into (1 - rate·h)² E[w²] + rate² noise² h; K steps give a geometric sum. `rate`
    holds one rate or many, each above 0 and below the edge 2 / max(curvatures); `starts` are the weights at the start.
    """
    total = torch.zeros_like(rate)
    for h, start in zip(curvatures, starts, strict=True):
        left = (1 - rate * h) ** (2 * inner_steps)
        total += h / 2 * (left * start**2 + (1 - left) * noise**2 * rate / (2 - rate * h))
    return total


@lru_cache
def quadratic_rate(inner_steps: int, curvatures: tuple[float, ...], starts: tuple[float, ...], noise: float) -> float:
    """The constant rate with the smallest expected loss: on a fine grid up to the edge, then on finer ones around it.

    The loss may have two valleys (one for each curvature), so a search that goes downhill could end in the wrong one.

    >>> from metalib.noisy import quadratic_rate
    >>> [round(quadratic_rate(steps, (1.0, 0.02), (1.0, 1.0), noise=0.1), 2) for steps in (1, 50)]
    [0.99, 0.65]
    """
    edge = 2 / max(curvatures)
    low, high = 1e-6 * edge, (1 - 1e-9) * edge
    for points in (2_001, 201, 201, 201):
        rates = torch.linspace(low, high, points, dtype=torch.float64)
        best = expected_loss(rates, inner_steps, curvatures, starts, noise).argmin().item()
        low, high = rates[max(best - 1, 0)].item(), rates[min(best + 1, points - 1)].item()
    return rates[best].item()
