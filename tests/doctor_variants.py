"""Broken inner loops by combination, as Python source: model, update rule, style of code, K, precision, fault.

    for variant in variants():
        variant.broken      the text of a module with `step` and `META`, its fault marked # GUILTY
        variant.repaired    the same without the fault

The faults are written for all models and rules at once, so nothing in the doctor can know these programs. Whether a
fault does harm depends on the combination: the first-order gradient of a learning rate is exact for one step.
"""

from dataclasses import dataclass, field
from itertools import cycle, islice
from textwrap import indent
from typing import NamedTuple

# ---------------------------------------------------------------------------------------------------------------------
# Models: `weights()` gives fresh leaves, and `loss(ws, part)` a loss; part 0 is to adapt to, part 1 to judge by.

MODELS = {
    "scalar": """
X = [torch.tensor([0.4, -1.1, 0.9], dtype=D), torch.tensor([0.7, 0.2, -0.6], dtype=D)]


def weights():
    return [torch.tensor(0.8, dtype=D, requires_grad=True)]


def loss(ws, part):
    return (({act}(ws[0] * X[part]) - X[part] ** 2) ** 2).mean()
""",
    "line": """
X = [torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=D), torch.tensor([[0.5, 0.3], [1.0, 1.0]], dtype=D)]
Y = torch.tensor([1.0, 2.0], dtype=D)


def weights():
    return [torch.tensor([0.3, -0.2], dtype=D, requires_grad=True), torch.tensor(0.1, dtype=D, requires_grad=True)]


def loss(ws, part):
    return ((X[part] @ ws[0] + ws[1] - Y) ** 2).mean()
""",
    "mlp": """
X = [torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D), torch.tensor([[0.2, 1.0], [1.0, -1.0]], dtype=D)]
Y = [torch.tensor([[1.0], [0.0], [2.0]], dtype=D), torch.tensor([[0.5], [1.0]], dtype=D)]


def weights():
    first = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=D, requires_grad=True)
    return [first, torch.tensor([[0.5], [-0.3]], dtype=D, requires_grad=True)]


def loss(ws, part):
    return (({act}(X[part] @ ws[0]) @ ws[1] - Y[part]) ** 2).mean()
""",
    "logistic": """
X = [torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D), torch.tensor([[0.2, 1.0], [1.0, -1.0]], dtype=D)]
Y = [torch.tensor([1.0, 0.0, 1.0], dtype=D), torch.tensor([0.0, 1.0], dtype=D)]


def weights():
    return [torch.tensor([0.3, -0.2], dtype=D, requires_grad=True), torch.zeros((), dtype=D, requires_grad=True)]


def loss(ws, part):
    return torch.nn.functional.binary_cross_entropy_with_logits(X[part] @ ws[0] + ws[1], Y[part])
""",
    "embedding": """
WORDS = [torch.tensor([0, 1, 1]), torch.tensor([1, 2, 0])]
Y = torch.tensor([0.5, 1.0, -0.5], dtype=D)


def weights():
    table = torch.tensor([[0.3, -0.2], [0.1, 0.4], [0.2, 0.2]], dtype=D, requires_grad=True)
    return [table, torch.tensor([0.7, -0.6], dtype=D, requires_grad=True)]


def loss(ws, part):
    return ((torch.nn.functional.embedding(WORDS[part], ws[0]) @ ws[1] - Y) ** 2).mean()
""",
    "sequential": """
X = [torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D), torch.tensor([[0.2, 1.0], [1.0, -1.0]], dtype=D)]
torch.manual_seed(3)
NET = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1)).to(D)
NAMES = [name for name, _ in NET.named_parameters()]


def weights():
    return [p.detach().clone().requires_grad_() for p in NET.parameters()]


def loss(ws, part):
    out = torch.func.functional_call(NET, dict(zip(NAMES, ws)), (X[part],))
    return ((out - X[part].sum(1, keepdim=True)) ** 2).mean()
""",
    "conv": """
X = [torch.linspace(-1, 1, 18, dtype=D).reshape(2, 1, 3, 3), torch.linspace(1, -2, 18, dtype=D).reshape(2, 1, 3, 3)]
torch.manual_seed(4)
NET = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(4, 1)).to(D)
NAMES = [name for name, _ in NET.named_parameters()]


def weights():
    return [p.detach().clone().requires_grad_() for p in NET.parameters()]


def loss(ws, part):
    return ((torch.func.functional_call(NET, dict(zip(NAMES, ws)), (X[part],)) - 1) ** 2).mean()
""",
    "gru": """
X = [torch.tensor([[[0.5]], [[-1.0]]], dtype=D), torch.tensor([[[1.0]], [[0.3]]], dtype=D)]
torch.manual_seed(5)
NET = torch.nn.GRUCell(1, 2).to(D)
NAMES = [name for name, _ in NET.named_parameters()]


def weights():
    return [p.detach().clone().requires_grad_() for p in NET.parameters()]


def loss(ws, part):
    state = torch.zeros(1, 2, dtype=D)
    for x in X[part]:
        state = torch.func.functional_call(NET, dict(zip(NAMES, ws)), (x, state))
    return ((state.sum() - 1) ** 2).mean()
""",
    "lstm": """
X = [torch.tensor([[[0.5]], [[-1.0]]], dtype=D), torch.tensor([[[1.0]], [[0.3]]], dtype=D)]
torch.manual_seed(6)
NET = torch.nn.LSTMCell(1, 2).to(D)
NAMES = [name for name, _ in NET.named_parameters()]


def weights():
    return [p.detach().clone().requires_grad_() for p in NET.parameters()]


def loss(ws, part):
    pair = torch.zeros(1, 2, dtype=D), torch.zeros(1, 2, dtype=D)
    for x in X[part]:
        pair = torch.func.functional_call(NET, dict(zip(NAMES, ws)), (x, pair))
    return (pair[0].sum() - 1) ** 2
""",
}
MODULES = ("sequential", "conv", "gru", "lstm")  # those with a NET
MULTIPLE = tuple(name for name in MODELS if name != "scalar")  # those with several weights

# ---------------------------------------------------------------------------------------------------------------------
# Update rules: the parts of the inner loop that they fill in.


class Rule(NamedTuple):
    meta: str
    rate: str  # reads the meta-parameter
    state: str  # what the rule remembers, updated with the gradients gs
    before: str  # the same before the first step
    loop: str
    change: str  # what is subtracted from w
    start: str = "ws = weights()"


RULES = {
    "sgd": Rule(
        '{"rate": torch.tensor(0.1, dtype=D)}', 'rate = meta["rate"]', "", "", "for w, g in zip(ws, gs)", "rate * g"
    ),
    "momentum": Rule(
        '{"rate": torch.tensor(0.1, dtype=D)}',
        'rate = meta["rate"]',
        "state = [0.9 * v + g for v, g in zip(state, gs)]",
        "state = [torch.zeros_like(w) for w in ws]",
        "for w, v in zip(ws, state)",
        "rate * v",
    ),
    "adam": Rule(
        '{"rate": torch.tensor(0.05, dtype=D)}',
        'rate = meta["rate"]',
        "state = [(0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2) for (m, v), g in zip(state, gs)]",
        "state = [(torch.zeros_like(w), torch.zeros_like(w)) for w in ws]",
        "for w, (m, v) in zip(ws, state)",
        "rate * m / (v + 1e-4).sqrt()",
    ),
    "rates": Rule(
        '{"rates": torch.linspace(0.05, 0.15, len(weights()), dtype=D)}',
        'rates = meta["rates"]',
        "",
        "",
        "for w, g, rate in zip(ws, gs, rates)",
        "rate * g",
    ),
    "init": Rule(
        '{f"w{i}": w.detach() for i, w in enumerate(weights())}',
        "rate = 0.1",
        "",
        "",
        "for w, g in zip(ws, gs)",
        "rate * g",
        "ws = [w.clone() for w in meta.values()]",
    ),
}

# ---------------------------------------------------------------------------------------------------------------------
# Styles: the same parts as a function, an object with __call__, two helpers, and a module within a module.

HEAD = """\
'''{name}'''
import copy
import torch
from torch.utils.checkpoint import checkpoint
D = torch.{dtype}
{above}
{model}
META = {meta}
"""

STYLES = {
    "function": """
def step(meta):
{start}
{before}
    for t in range({k}):
{inner}
{after}
    return loss(ws, 1)
""",
    "object": """
class Step:
    def __init__(self, steps):
        self.steps, self.seen = steps, []

    def __call__(self, meta):
{start4}
{before4}
        for t in range(self.steps):
{inner4}
            self.seen.append(len(ws))
{after4}
        return loss(ws, 1)


step = Step({k})
""",
    "helper": """
def initial(meta):
{start}
    return ws


{decorator}
def advance(ws, state, meta, t):
{inner0}
    return ws, state


def step(meta):
    ws, state = initial(meta), None
{before}
    for t in range({k}):
        {call}
{after}
    return loss(ws, 1)
""",
    "module": """
class Advance(torch.nn.Module):
    {decorator}
    def forward(self, ws, state, meta, t):
{inner4}
        return ws, state


class Learner(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps, self.advance = steps, Advance()

    def forward(self, meta):
        state = None
{start4}
{before4}
        for t in range(self.steps):
            ws, state = self.advance(ws, state, meta, t)
{after4}
        return loss(ws, 1)


step = Learner({k})
""",
}
DEPTH = {"object": 12, "function": 8, "helper": 4, "module": 8}  # the indentation of the inner loop's body

# Things that look like faults and are none: they stand in the broken and in the repaired program.
DECOYS = [
    "",
    "history = [value.item(), float(value)]",
    "with torch.no_grad():\n    shown = loss(ws, 1)",
    "norms = [g.detach().norm() for g in gs]",
    "kept = copy.deepcopy([w.data for w in ws])",
]

# ---------------------------------------------------------------------------------------------------------------------


class Combination(NamedTuple):
    model: str
    rule: str
    style: str
    k: int
    dtype: str

    @property
    def on_rate(self) -> bool:
        return self.rule != "init"


@dataclass(frozen=True)
class Fault:
    """`put` replaces parts of the program; `mend` parts of the repaired one, where that is not the plain program."""

    cause: str
    put: dict
    mend: dict = field(default_factory=dict)
    fits: object = lambda c: True
    harmless: object = lambda c: False
    count: int = 2


def rate(c):  # the meta-parameter is a rate, one number
    return c.rule in ("sgd", "momentum", "adam")


def rates(c):
    return c.rule == "rates"


def on_rate(c):
    return c.on_rate


def init(c):
    return c.rule == "init"


def one_step(c):
    """With one step, nothing that leads to the gradient depends on a learning rate."""
    return c.on_rate and c.k == 1


def reads_weights(c):
    """Does the backward pass need the old weights? Not where a weight is only multiplied with data."""
    return c.model not in ("line", "scalar", "logistic")


def modules(c):
    return c.model in MODULES


def hand_written(c):
    return c.model in ("scalar", "mlp")


FUNCTION = """
class Act(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        {save}
        return y

    @staticmethod
    {mark}
    def backward(ctx, upstream):
        {load}
        {give}
"""


def activation(**changed):
    parts = {"save": "ctx.save_for_backward(y)", "mark": "", "load": "(y,) = ctx.saved_tensors"}
    parts |= {"give": "return upstream * (1 - y * y)"} | changed
    return {
        "act": "Act.apply",
        "above": "\n".join(line for line in FUNCTION.format(**parts).splitlines() if line.strip()),
    }


TAKE = "value = loss(ws, 0)\ngs = torch.autograd.grad(value, ws, create_graph=True)"
STEP = "for w, g in zip(ws, gs):\n    w.grad = g\n"

AWAY = {"start": "ws = [w.clone() for w in meta.values()]\norigin = [w.detach() for w in ws]"}
FROM_AWAY = (
    "away = sum(((w - o) ** 2).sum() for w, o in zip(ws, origin))\n"
    "rate = 0.1 * torch.where(away > 0, {root}, torch.ones_like(away))"
)

FAULTS = {
    # writes and reads past the history
    "data_assign": Fault("data_write", {"update": "{loop}:\n    w.data = w - {change}  # GUILTY"}, count=4),
    "data_sub": Fault("data_write", {"update": "{loop}:\n    w.data.sub_({change})  # GUILTY"}, fits=on_rate, count=3),
    "data_copy": Fault("data_write", {"update": "{loop}:\n    w.data.copy_(w - {change})  # GUILTY"}, fits=on_rate),
    "vector": Fault(
        "data_write",
        {
            "start": "ws = list(NET.parameters())",
            "update": "flat = torch.cat([(w - {change}).reshape(-1) {loop}])\n"
            "torch.nn.utils.vector_to_parameters(flat, NET.parameters())  # GUILTY",
        },
        fits=lambda c: modules(c) and c.on_rate,
    ),
    "data_read": Fault(
        "data_read",
        {"update": "ws = [w.data - {change} {loop}]  # GUILTY"},
        harmless=one_step,
        fits=lambda c: c.k > 1 or c.on_rate,
        count=4,
    ),
    "data_gradient": Fault("data_read", {"take": TAKE + "\ngs = [g.data for g in gs]  # GUILTY"}, harmless=one_step),
    "data_rate": Fault("data_read", {"rate": 'rate = meta["rate"].data  # GUILTY'}, fits=rate),
    # detached
    "detach_weights": Fault(
        "detach",
        {"update": "ws = [(w - {change}).detach().requires_grad_() {loop}]  # GUILTY"},
        count=3,
    ),
    "detach_gradient": Fault("detach", {"take": TAKE + "\ngs = [g.detach() for g in gs]  # GUILTY"}, harmless=one_step),
    "detach_rate": Fault("detach", {"rate": 'rate = meta["rate"].detach()  # GUILTY'}, fits=rate),
    "detach_start": Fault(
        "detach", {"start": "ws = [w.detach().requires_grad_() for w in meta.values()]  # GUILTY"}, fits=init
    ),
    "detach_velocity": Fault(
        "detach",
        {"state": "state = [0.9 * v.detach() + g for v, g in zip(state, gs)]  # GUILTY"},
        fits=lambda c: c.rule == "momentum" and c.k == 5,
    ),
    "detached_write": Fault(
        "detached_write",
        {"take": TAKE + "\nfor g in gs:\n    g.detach().mul_(0.5)  # GUILTY"},
        {"take": TAKE + "\ngs = [0.5 * g for g in gs]"},
        harmless=one_step,
        fits=lambda c: c.rule in ("sgd", "rates", "init"),
    ),
    # copies
    "rewrap": Fault(
        "parameter_rewrap", {"update": "ws = [torch.nn.Parameter(w - {change}) {loop}]  # GUILTY"}, count=4
    ),
    "rewrap_rate": Fault(
        "parameter_rewrap", {"rate": 'rate = torch.nn.Parameter(meta["rate"])  # GUILTY'}, fits=rate, count=2
    ),
    "copy_tensor": Fault("copied", {"rate": 'rate = torch.tensor(meta["rate"])  # GUILTY'}, fits=rate),
    "copy_deep": Fault("copied", {"start": "ws = [copy.deepcopy(w) for w in meta.values()]  # GUILTY"}, fits=init),
    "copy_deep_rate": Fault("copied", {"rate": 'rate = copy.deepcopy(meta["rate"])  # GUILTY'}, fits=rate),
    # left torch
    "item": Fault("left_torch", {"rate": 'rate = meta["rate"].item()  # GUILTY'}, fits=rate),
    "float": Fault("left_torch", {"rate": 'rate = float(meta["rate"])  # GUILTY'}, fits=rate),
    "tolist": Fault("left_torch", {"rate": 'rates = meta["rates"].tolist()  # GUILTY'}, fits=rates),
    "numpy": Fault(
        "left_torch",
        {"rate": 'rate = torch.from_numpy(meta["rate"].detach().numpy().copy())  # GUILTY'},
        fits=rate,
    ),
    "schedule": Fault(
        "left_torch",
        {"rate": 'rate = torch.full((), meta["rate"].item() / (t + 1), dtype=D)  # GUILTY'},
        {"rate": 'rate = meta["rate"] / (t + 1)'},
        fits=rate,
    ),
    # switched off
    "no_grad": Fault(
        "no_grad",
        {
            "update": "with torch.no_grad():\n    ws = [w - {change} {loop}]  # GUILTY\n"
            "ws = [w.requires_grad_() for w in ws]",
        },
        count=4,
    ),
    "no_grad_write": Fault(
        "no_grad",
        {"update": "with torch.no_grad():\n    {loop}:\n        w -= {change}  # GUILTY"},
        fits=rate,  # with a tensor of rates, the loop's own line would be the first that is cut
        count=3,
    ),
    "no_grad_rate": Fault(
        "no_grad",
        {"rate": 'with torch.no_grad():\n    rate = 2 * meta["rate"].abs()  # GUILTY'},
        {"rate": 'rate = 2 * meta["rate"].abs()'},
        fits=rate,
    ),
    "set_grad_enabled": Fault(
        "no_grad",
        {
            "update": "torch.set_grad_enabled(False)  # GUILTY\nws = [w - {change} {loop}]\n"
            "torch.set_grad_enabled(True)\nws = [w.requires_grad_() for w in ws]",
        },
    ),
    "decorator": Fault(
        "no_grad",
        {
            "decorator": "@torch.no_grad()  # GUILTY",
            "take": "with torch.enable_grad():\n    value = loss(ws, 0)\n    gs = torch.autograd.grad(value, ws)",
            "update": "ws = [(w - {change}).requires_grad_() {loop}]",
        },
        fits=lambda c: c.style in ("helper", "module") and c.on_rate,
    ),
    "inference": Fault(
        "inference_mode",
        {"rate": 'with torch.inference_mode():\n    rate = 2 * meta["rate"]  # GUILTY'},
        {"rate": 'rate = 2 * meta["rate"]'},
        fits=rate,
    ),
    # the first order
    "first_order": Fault(
        "create_graph",
        {"take": "value = loss(ws, 0)\ngs = torch.autograd.grad(value, ws)  # GUILTY"},
        harmless=one_step,
        count=4,
    ),
    "retain_only": Fault(
        "create_graph",
        {"take": "value = loss(ws, 0)\ngs = torch.autograd.grad(value, ws, retain_graph=True)  # GUILTY"},
        harmless=one_step,
    ),
    "backward": Fault(
        "create_graph",
        {
            "take": "[w.retain_grad() for w in ws if not w.is_leaf]\nvalue = loss(ws, 0)\n"
            "value.backward(inputs=ws)  # GUILTY\ngs = [w.grad for w in ws]"
        },
        fits=lambda c: c.k > 1,
    ),
    # optimisers and modules
    "optimizer": Fault(
        "optimizer_step",
        {"update": STEP + 'torch.optim.SGD(ws, lr=meta["rate"]).step()  # GUILTY'},
        fits=lambda c: c.rule == "sgd",
        count=3,
    ),
    "optimizer_adam": Fault(
        "optimizer_step",
        {"update": STEP + 'opt = torch.optim.Adam(ws, lr=meta["rate"])\nopt.step()  # GUILTY'},
        fits=lambda c: c.rule == "sgd" and c.model != "embedding",
    ),
    "optimizer_on_meta": Fault(
        "optimizer_step",
        {
            "start": "ws = list(meta.values())",
            "update": STEP + "opt = torch.optim.SGD(ws, lr=0.1)\nopt.step()  # GUILTY",
        },
        fits=init,
    ),
    "load_state_dict": Fault(
        "load_state_dict",
        {
            "start": "ws = list(NET.parameters())",
            "update": "NET.load_state_dict(dict(zip(NAMES, [w - {change} {loop}])))  # GUILTY",
        },
        fits=lambda c: modules(c) and c.on_rate,
        count=4,
    ),
    # errors
    "leaf": Fault("inplace_on_leaf", {"update": "{loop}:\n    w -= {change}  # GUILTY"}, fits=on_rate, count=3),
    "saved": Fault(
        "inplace_on_saved",
        {"start": "ws = [w.clone() for w in weights()]", "update": "{loop}:\n    w.sub_({change})  # GUILTY"},
        fits=lambda c: c.on_rate and reads_weights(c) and c.k > 1,
        count=4,
    ),
    "velocity": Fault(
        "inplace_on_saved",
        {"state": "for v, g in zip(state, gs):\n    v.mul_(0.9).add_(g)  # GUILTY"},
        fits=lambda c: c.rule == "momentum",
        harmless=one_step,
    ),
    "freed": Fault(
        "graph_freed",
        {"take": "value = loss(ws, 0)\ngs = [torch.autograd.grad(value, w)[0] for w in ws]  # GUILTY"},
        fits=lambda c: c.model in ("mlp", "sequential", "conv", "gru", "embedding"),
    ),
    "freed_loss": Fault(
        "graph_freed",
        {
            "take": "value = loss(ws, 0)\ngs = torch.autograd.grad(value, ws)  # GUILTY",
            "after": "ws = [w + 0.1 * value for w in ws]",
        },
        {"after": "ws = [w + 0.1 * value for w in ws]"},
        fits=lambda c: c.style in ("function", "object") and (c.k > 1 or not c.on_rate) and c.model not in ("scalar",),
    ),
    "detached_loss": Fault(
        "detach",  # found where the gradient is asked for, and caused here
        {
            "update": "ws = [w - {change} {loop}]",
            "take": "value = loss([w.detach() for w in ws], 0)  # GUILTY\n"
            "gs = torch.autograd.grad(value, ws, create_graph=True)",
        },
    ),
    # on the way back
    "hook": Fault(
        "hook",
        {"after": "for w in ws:\n    w.register_hook(lambda g: 0.5 * g)  # GUILTY"},
        fits=lambda c: c.on_rate or c.k > 1,
        count=3,
    ),
    "hook_rate": Fault(
        "hook",
        {"rate": 'rate = 1 * meta["rate"]\nrate.register_hook(lambda g: g.clamp(-1e-3, 1e-3))  # GUILTY'},
        {"rate": 'rate = 1 * meta["rate"]'},
        fits=rate,
    ),
    "wrong_backward": Fault(
        "custom_backward",
        activation(give="return 1.3 * upstream * (1 - y * y)  # GUILTY"),
        activation(),
        fits=hand_written,
        count=3,
    ),
    "detached_save": Fault(
        "no_double_backward",
        activation(save="ctx.y = y.detach()  # GUILTY", load="y = ctx.y"),
        activation(),
        fits=hand_written,
        harmless=one_step,
    ),
    # nothing to find in the value
    "unused": Fault(
        "result_unused",
        {"call": "advance(ws, state, meta, t)  # GUILTY"},
        fits=lambda c: c.style == "helper" and c.on_rate,
        count=3,
    ),
    "unused_list": Fault("result_unused", {"update": "new = [w - {change} {loop}]  # GUILTY"}, fits=on_rate),
    "clamp": Fault(
        "flat",
        {"rate": 'rate = meta["rate"].clamp(max=0.01)  # GUILTY'},
        {"rate": 'rate = meta["rate"].clamp(max=1)'},
        rate,
    ),
    "round": Fault(
        "flat",
        {"rate": 'rate = 0.1 * torch.round(meta["rate"] + 1)  # GUILTY'},
        {"rate": 'rate = 0.1 * (meta["rate"] + 1)'},
        rate,
    ),
    "wrong_name": Fault("wrong_name", {"rate": 'rate = meta.get("lr", 0.1)  # GUILTY'}, fits=rate),
    # not finite
    "root": Fault(
        "nan_gradient",
        {
            "start": "ws = weights()\norigin = [w.detach().clone() for w in ws]",
            "take": "away = sum(((w - o) ** 2).sum() for w, o in zip(ws, origin))\n"
            "value = loss(ws, 0) + 0.1 * away.sqrt()  # GUILTY\ngs = torch.autograd.grad(value, ws, create_graph=True)",
        },
        {
            "start": "ws = weights()\norigin = [w.detach().clone() for w in ws]",
            "take": "away = sum(((w - o) ** 2).sum() for w, o in zip(ws, origin))\n"
            "value = loss(ws, 0) + 0.1 * (away + 1e-2).sqrt()\ngs = torch.autograd.grad(value, ws, create_graph=True)",
        },
        fits=lambda c: c.on_rate and c.style in ("function", "object"),
        count=3,
    ),
    "root_in_where": Fault(
        "nan_gradient",
        AWAY | {"rate": FROM_AWAY.replace("{root}", "away.sqrt()") + "  # GUILTY"},
        AWAY | {"rate": FROM_AWAY.replace("{root}", "(away + 1e-2).sqrt()")},
        fits=lambda c: init(c) and c.k == 1 and c.style in ("function", "object"),
    ),
    "logarithm": Fault(
        "not_finite",
        {"rate": 'rate = (meta["rate"] - 0.5).log()  # GUILTY'},
        {"rate": 'rate = (meta["rate"] - 0.5).exp() / 10'},
        fits=rate,
    ),
    "explodes": Fault(
        "explodes",
        {"rate": 'rate = 1e12 * meta["rate"]  # GUILTY', "k": "16"},
        {"rate": 'rate = 0.5 * meta["rate"]', "k": "16"},
        fits=lambda c: c.rule == "sgd" and c.model == "line",
    ),
}

# Right programs with habits that are not the plain loop's: nothing here may be called a fault.
RIGHT = {
    "functional": {"take": "value = loss(ws, 0)\ngs = torch.func.grad(lambda ws: loss(ws, 0))(ws)"},
    "vjp": {"take": "value, back = torch.func.vjp(lambda *ws: loss(ws, 0), *ws)\ngs = back(torch.ones_like(value))"},
    "watched": {"after": "seen = []\nfor w in ws:\n    w.register_hook(lambda g: seen.append(g.norm()))"},
    "noise": {"take": TAKE + "\ngs = [g + 0.01 * torch.randn_like(g) for g in gs]"},
    "own_buffer": {"take": TAKE + "\ntotal = torch.zeros_like(gs[0])\ntotal += gs[0].detach()"},
    "checkpointed": {
        "take": "value = checkpoint(lambda *ws: loss(ws, 0), *ws, use_reentrant=False)\n"
        "gs = torch.autograd.grad(value, ws, create_graph=True)"
    },
    "backward": {
        "take": "[w.retain_grad() for w in ws if not w.is_leaf]\nvalue = loss(ws, 0)\n"
        "value.backward(inputs=ws, create_graph=True)\ngs = [w.grad for w in ws]"
    },
    "custom": activation(),
}


class Variant(NamedTuple):
    name: str
    cause: str | None
    harmless: bool
    broken: str | None
    repaired: str


def write(name: str, c: Combination, changes: dict, decoy: str) -> str:
    """The program of a combination, with some of its parts changed."""
    rule = RULES[c.rule]
    parts = {"start": rule.start, "before": rule.before or "state = None", "rate": rule.rate, "take": TAKE}
    parts |= {"state": rule.state, "update": "ws = [w - {change} {loop}]", "after": ""}
    parts |= {"call": "ws, state = advance(ws, state, meta, t)"}
    parts |= {"act": "torch.tanh", "above": "", "decorator": "", "k": str(c.k)} | changes
    update = parts["update"].replace("{change}", rule.change).replace("{loop}", rule.loop)
    inner = "\n".join(part for part in (parts["rate"], parts["take"], decoy, parts["state"], update) if part)
    blocks = {"start": parts["start"], "before": parts["before"], "after": parts["after"]}
    texts = {key: indent(text, 4 * " ") for key, text in blocks.items()}
    texts |= {f"{key}4": indent(text, 8 * " ") for key, text in blocks.items()}
    texts |= {"inner": indent(inner, 8 * " "), "inner0": indent(inner, 4 * " ")}
    texts["inner4"] = indent(inner, (12 if c.style == "object" else 8) * " ")
    body = STYLES[c.style].format(**texts, k=parts["k"], call=parts["call"], decorator=parts["decorator"])
    model = MODELS[c.model].replace("{act}", parts["act"])
    text = HEAD.format(name=name, dtype=c.dtype, above=parts["above"], model=model, meta=rule.meta) + body
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"


def combinations():
    """All in turn, so that each fault gets different ones: the lengths of the lists have no divisor in common."""
    models = ["mlp", "sequential", "scalar", "conv", "logistic", "gru", "embedding", "lstm", "line"]
    rules = ["sgd", "momentum", "init", "adam", "rates"]
    styles = ["function", "helper", "module", "object"]
    steps = [2, 1, 2, 5, 1, 2, 1]
    dtypes = ["float64"] * 10 + ["float32"]
    return map(Combination, *map(cycle, (models, rules, styles, steps, dtypes)))


def variants() -> list[Variant]:
    found, stream = [], combinations()
    for at, (name, fault) in enumerate(FAULTS.items()):
        for c in islice(filter(fault.fits, stream), fault.count):
            decoy = DECOYS[(at + len(found)) % len(DECOYS)]
            label = f"{name}-{c.model}-{c.rule}-{c.style}-{c.k}-{c.dtype}"
            broken, repaired = write(label, c, fault.put, decoy), write(label, c, fault.mend, decoy)
            found.append(Variant(label, fault.cause, fault.harmless(c), broken, repaired))
    for at, (name, changes) in enumerate(RIGHT.items()):
        fits = (c for c in stream if name != "custom" or hand_written(c))
        for c in islice(fits, 2):
            label = f"right-{name}-{c.model}-{c.rule}-{c.style}-{c.k}-{c.dtype}"
            found.append(Variant(label, None, True, None, write(label, c, changes, DECOYS[at % len(DECOYS)])))
    return found
