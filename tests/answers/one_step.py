"""Answers to the exercises of notebook 01: wrong ones with what must be said of them, and right ones.

In 1.1 a first-order gradient is no wrong answer: at one step it is the right one.
"""

import numpy as np
import torch


def weight(K, rate, h, c, w0):
    return c + (1 - rate * h) ** K * (w0 - c)


def formula(K, rate, h, c, g, d, w0):
    return -g * (weight(K, rate, h, c, w0) - d) * K * h * (1 - rate * h) ** (K - 1) * (w0 - c)


def step_by_step(K, rate, h, c, g, d, w0):
    """dw/d rate is carried along beside w."""
    w, slope = w0, 0.0
    for _ in range(K):
        w, slope = w - rate * h * (w - c), slope - h * (w - c) - rate * h * slope
    return g * (w - d) * slope


def first_order(K, rate, h, c, g, d, w0):
    w, slope = w0, 0.0
    for _ in range(K):
        w, slope = w - rate * h * (w - c), slope - h * (w - c)
    return g * (w - d) * slope


def last_step(K, rate, h, c, g, d, w0):
    return -g * (weight(K, rate, h, c, w0) - d) * h * (weight(K - 1, rate, h, c, w0) - c)


def same_loss(factor=1, power=-1, curvatures=2):
    """The formula of the notebook, for an outer loss that is the inner one; right if nothing is changed."""
    return lambda K, rate, h, c, g, d, w0: (
        -factor * K * h**curvatures * (1 - rate * h) ** (2 * K + power) * (w0 - c) ** 2
    )


def central(width, scaled=True):
    def slope(f, x):
        step = width * x if scaled else width
        return (f(x + step) - f(x - step)) / (2 * step)

    return slope


def one_sided(width):
    return lambda f, x: (f(x + width * x) - f(x)) / (width * x)


def extrapolated(f, x):
    near, far = central(5e-4)(f, x), central(1e-3)(f, x)
    return (4 * near - far) / 3


def five_points(f, x):
    step = torch.tensor(3e-4, dtype=torch.float64) * x
    return (8 * (f(x + step) - f(x - step)) - f(x + 2 * step) + f(x - 2 * step)) / (12 * step)


def in_float32(f, x):
    x = torch.tensor(x)
    return (f(1.001 * x) - f(0.999 * x)) / (0.002 * x)


WRONG = {
    "1.1": [
        ("a product for each weight", lambda inner, outer: -inner * outer),
        ("right but for its sign: the step goes against", lambda inner, outer: (inner * outer).sum()),
        ("exactly zero", lambda inner, outer: 0 * inner.sum()),
        ("minus the inner gradient times itself", lambda inner, outer: -(inner**2).sum()),
        ("minus the outer gradient times itself", lambda inner, outer: -(outer.norm() ** 2)),
        ("a mean of the products", lambda inner, outer: -(inner * outer).mean()),
        ("forgets the angle", lambda inner, outer: -inner.norm() * outer.norm()),
        ("entries of different weights", lambda inner, outer: -inner.sum() * outer.sum()),
        ("the cosine of the angle", lambda a, b: -torch.cosine_similarity(a.reshape(-1), b.reshape(-1), dim=0)),
        ("a tensor of shape (3,)", lambda inner, outer: -(inner * outer).cumsum(0) if inner.dim() else -inner * outer),
        ("1D tensors expected", lambda inner, outer: -torch.dot(inner, outer)),
        ("nothing that is a number", lambda inner, outer: None),
        ("is not callable", 0.0),
    ],
    "1.2": [
        ("it is the outer gradient that has the factor g", same_loss()),
        ("distance to d, not to c", lambda K, rate, h, c, g, d, w0: formula(K, rate, h, c, g, c, w0)),
        ("the share of the last step alone", lambda K, *rest: formula(K, *rest) / K),
        ("the share of the last step alone", last_step),
        ("first-order gradient", first_order),
        ("One power of 1 - rate·h too many", same_loss(power=0)),
        ("One power of 1 - rate·h too few", same_loss(power=-2)),
        ("One curvature is missing", same_loss(curvatures=1)),
        ("the ½ of the loss cancels", same_loss(factor=2)),
        ("right but for its sign", same_loss(factor=-1)),
        ("exactly zero", same_loss(factor=0)),
        ("a formula for one step", lambda K, *rest: formula(1, *rest)),
        ("are exchanged", lambda K, rate, h, c, g, d, w0: formula(K, rate, g, d, h, c, w0)),
        ("already at the first place", lambda K, rate, h, c, g, d, w0: -K * h * g * (w0 - c)),
        ("nothing that is a number", lambda *given: None),
        ("is not callable", 0.0),
    ],
    "1.3": [
        ("one side of x", lambda f, x: (f(x + 1e-6) - f(x)) / 1e-6),
        ("one side of x", one_sided(1.5e-8)),
        ("one side of x", lambda f, x: (f(x) - f(x - 1e-7 * x)) / (1e-7 * x)),
        ("Right at the first places, not where x is 0.0013", central(1e-6, scaled=False)),
        ("too near", central(1e-10)),
        ("too far", central(0.01)),
        ("too far", central(2.0)),
        ("float32 number", in_float32),
        ("float32 number", lambda f, x: central(np.float32(1e-3))(f, np.float32(x))),
        ("two widths apart", lambda f, x: (f(x * 1.00001) - f(x * 0.99999)) / (1e-5 * x)),
        ("divide by the distance", lambda f, x: (f(x * 1.00001) - f(x * 0.99999)) / (4e-5 * x)),
        ("right but for its sign", lambda f, x: -central(1e-6)(f, x)),
        ("one value has no slope", lambda f, x: 3 * f(x) / x),
        ("never asks", lambda f, x: 0.0),
        ("The slope is zero", lambda f, x: (f(x) - f(x)) / 1e-6),
        ("nothing that is a number", lambda f, x: None),
        ("is not callable", 1e-5),
    ],
}
RIGHT = {
    "1.1": [
        lambda inner, outer: -(inner * outer).sum(),
        lambda inner, outer: -torch.dot(inner.flatten(), outer.flatten()).item(),
        lambda inner, outer: -torch.tensordot(outer, inner, inner.dim()),
    ],
    "1.2": [formula, step_by_step],
    "1.3": [central(1e-5), central(1e-6), extrapolated, five_points],
}
