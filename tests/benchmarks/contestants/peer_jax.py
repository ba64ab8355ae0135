"""JAX and optax: the whole outer step jitted, the inner loop a scan; reverse or forward mode. Compiled anew for each K.

One thread, as everybody here: the variables are read when jax is imported, and the flags alone leave it several.
"""

import os

os.environ.setdefault("PJRT_NPROC", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from tasks import OUTER_RATE  # noqa: E402


def network_loss(weights, x, y):
    hidden = jax.nn.relu(x @ weights["fc1.weight"].T + weights["fc1.bias"])
    logits = hidden @ weights["fc2.weight"].T + weights["fc2.bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def one_weight_loss(weights, x, y):
    return jnp.mean((weights["w"] * x - y) ** 2)


def outer_loss(meta, weights, inner, outer, loss_of, inner_steps):
    """The outer loss after `inner_steps` steps through the stacked batches `inner`."""
    xs, ys = inner

    def one_step(weights, step):
        loss, grads = jax.value_and_grad(loss_of)(weights, xs[step % len(xs)], ys[step % len(xs)])
        rate = meta["rate"] if "rate" in meta else jax.nn.softplus(meta["slope"] * loss + meta["offset"])
        return jax.tree.map(lambda w, grad: w - rate * grad, weights, grads), None

    weights, _ = jax.lax.scan(one_step, weights, jnp.arange(inner_steps))
    return loss_of(weights, *outer)


def differentiated(run, mode: str):
    """(loss, gradient) of `run` by its first argument."""
    if mode == "reverse":
        return jax.value_and_grad(run)
    forward = jax.jacfwd(lambda *args: (run(*args),) * 2, has_aux=True)  # the loss itself comes out as the second
    return lambda *args: forward(*args)[::-1]


def arrays(task, dtype: str) -> tuple:
    """(meta, (weights, inner batches stacked, outer batch)) of a task."""

    def cast(array):
        array = np.asarray(array)
        return jnp.asarray(array.astype(dtype if array.dtype.kind == "f" else "int32"))

    weights = {name: cast(w) for name, w in task.weights.items()}
    inner = tuple(cast(np.stack(part)) for part in zip(*task.inner, strict=True))
    return {name: cast(value) for name, value in task.meta.items()}, (weights, inner, tuple(map(cast, task.outer)))


def gradient_of(task, inner_steps: int, mode: str):
    loss_of = network_loss if task.labels else one_weight_loss
    return differentiated(lambda *args: outer_loss(*args, loss_of, inner_steps), mode)


class Contestant:
    def __init__(self, task, inner_steps, dtype, mode):
        jax.config.update("jax_enable_x64", dtype == "float64")
        self.meta, self.data = arrays(task, dtype)
        self.jit(gradient_of(task, inner_steps, mode))

    def jit(self, gradient):
        adam = optax.adam(OUTER_RATE)

        def step(meta, state, data):
            _, grads = gradient(meta, *data)
            updates, state = adam.update(grads, state, meta)
            return optax.apply_updates(meta, updates), state

        self.state = adam.init(self.meta)
        self.gradient, self.one_step = jax.jit(gradient), jax.jit(step)

    def meta_gradient(self):
        loss, grads = self.gradient(self.meta, *self.data)
        return loss.tolist(), [grads[name].tolist() for name in self.meta]

    def step(self):
        self.meta, self.state = jax.block_until_ready(self.one_step(self.meta, self.state, self.data))


class Sweep(Contestant):
    """The same program under vmap, over runs that are stacked once."""

    def __init__(self, runs, inner_steps, dtype, mode):
        jax.config.update("jax_enable_x64", dtype == "float64")
        each = [arrays(run, dtype) for run in runs]
        self.meta, self.data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        self.jit(jax.vmap(gradient_of(runs[0], inner_steps, mode)))

    def meta_gradient(self):
        losses, (derivatives,) = super().meta_gradient()
        return losses, derivatives
