"""Your own module as a problem: the numbers of functional_call, the module untouched, and refusals in words."""

import copy
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

from metalib.metagrad import meta_gradient
from metalib.own import FromModule
from metalib.problems import Batch, Task
from metalib.rates import Learned

MODES = ["reverse", "forward", "checkpointed", "auto"]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell, self.last = kind(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(self.cell(x[:, None, :].expand(-1, 3, -1))[0][:, -1])


class Listed(nn.Module):
    """Parameters in a ParameterList and a ParameterDict, one of them never used."""

    def __init__(self):
        super().__init__()
        self.matrices = nn.ParameterList([torch.randn(6, 6) * 0.3, torch.randn(6, 3) * 0.3])
        self.others = nn.ParameterDict({"bias": torch.zeros(3), "unused": torch.zeros(2)})

    def forward(self, x):
        for matrix in self.matrices:
            x = torch.tanh(x @ matrix)
        return x + self.others["bias"]


def frozen():
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3))
    net[0].requires_grad_(False)
    return net


def sequence(*layers):
    return nn.Sequential(nn.Linear(6, 6), *layers, nn.Tanh(), nn.Linear(6, 3))


MODULES = {
    "plain": sequence,
    "tied": Tied,
    "lstm": partial(Recurrent, nn.LSTM),
    "gru": partial(Recurrent, nn.GRU),
    "listed": Listed,
    "frozen": frozen,
    "batch norm, training": lambda: sequence(nn.BatchNorm1d(6)),
    "batch norm, evaluating": lambda: sequence(nn.BatchNorm1d(6)).eval(),
    "layer norm": lambda: sequence(nn.LayerNorm(6), nn.GELU()),
    "parametrized": lambda: nn.Sequential(parametrizations.orthogonal(nn.Linear(6, 6)), nn.Tanh(), nn.Linear(6, 3)),
    "dropout, evaluating": lambda: sequence(nn.Dropout()).eval(),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3)
    ),
}


def made(name):
    torch.manual_seed(0)
    return MODULES[name]().double()


def batches(count, features=6):
    draw = torch.Generator().manual_seed(1)
    rows = [torch.randn(8, features, dtype=torch.float64, generator=draw) for _ in range(count)]
    return [Batch(x, torch.randint(3, (8,), generator=draw)) for x in rows]


def problem_of(module):
    *inner, outer = batches(4)
    return FromModule(module, F.cross_entropy, inner, outer)


def by_functional_call(module, steps, rate):
    module, (*inner, outer) = copy.deepcopy(module), batches(4)
    rate = torch.tensor(rate, dtype=torch.float64, requires_grad=True)
    weights = {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters() if p.requires_grad}
    for step in range(steps):
        x, y = inner[step % 3]
        loss = F.cross_entropy(functional_call(module, weights, (x,)), y)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True, materialize_grads=True)
        weights = {name: w - rate * g for (name, w), g in zip(weights.items(), grads, strict=True)}
    loss = F.cross_entropy(functional_call(module, weights, (outer.x,)), outer.y)
    return torch.autograd.grad(loss, rate)[0].item()


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("name", list(MODULES))
def test_the_numbers_are_those_of_functional_call(name, steps):
    module = made(name)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    expected = by_functional_call(module, steps, 0.3)
    assert expected != 0
    for mode in MODES:
        found = meta_gradient(problem_of(module), 0.3, steps, mode)
        assert found.gradient["rate"].item() == pytest.approx(expected, rel=1e-10)
    for key, value in module.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert all(p.grad is None for p in module.parameters())


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ("lstm", "gru")])
def test_many_runs_of_a_module_at_once(name):
    problem = problem_of(made(name))
    together = meta_gradient(problem, [0.1, 0.3], [2, 5], "batched")
    for i, (rate, steps) in enumerate([(0.1, 2), (0.3, 5)]):
        alone = meta_gradient(problem, rate, steps).gradient["rate"].item()
        assert together.gradient["rate"][i].item() == pytest.approx(alone, rel=1e-10)


def test_only_what_learns_is_a_weight():
    assert list(problem_of(made("frozen")).initial_weights()) == ["2.weight", "2.bias"]
    assert list(problem_of(made("tied")).initial_weights()) == [
        "first.weight", "first.bias", "second.bias", "last.weight", "last.bias"
    ]  # fmt: skip


def test_several_inputs():
    *inner, outer = [Batch((b.x[:, :3], b.x[:, 3:]), b.y) for b in batches(3)]
    found = meta_gradient(FromModule(nn.Bilinear(3, 3, 3).double(), F.cross_entropy, inner, outer), 0.3, 3)
    assert found.gradient["rate"].isfinite()


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_dropout_draws_the_same_numbers_in_every_mode_and_none_of_the_callers(steps):
    torch.manual_seed(0)
    problem = problem_of(sequence(nn.Dropout(0.5)).double())
    state = torch.get_rng_state()

    def drawn(mode, seed=0):
        return meta_gradient(problem, 0.3, steps, mode, generator=torch.Generator().manual_seed(seed))

    expected = drawn("reverse").gradient["rate"].item()
    for mode in MODES:
        assert drawn(mode).gradient["rate"].item() == pytest.approx(expected, rel=1e-10)
    assert drawn("reverse", seed=1).gradient["rate"].item() != expected
    assert torch.equal(torch.get_rng_state(), state)

    def loss_at(rate):
        draws = torch.Generator().manual_seed(0)
        return meta_gradient(problem, rate, steps, "reverse", generator=draws).outer_loss.item()

    slope = (loss_at(0.3 + 1e-5) - loss_at(0.3 - 1e-5)) / 2e-5
    assert expected == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_dropout_without_a_generator_is_refused(mode):
    with pytest.raises(ValueError, match="draws random numbers .* generator=torch.Generator.* module.eval"):
        meta_gradient(problem_of(sequence(nn.Dropout()).double()), 0.3, 2, mode)


class Kept(nn.Module):
    """Keeps a tensor that has a history."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.norm = self.layer.weight.norm()

    def forward(self, x):
        return self.layer(x) / self.norm


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (lambda: sequence(parametrizations.spectral_norm(nn.Linear(6, 6))), "writes its buffer .* call module.eval"),
        (
            lambda: sequence(parametrizations.weight_norm(nn.Linear(6, 6))),
            "weight_norm, whose second derivative is wrong",
        ),
        (lambda: sequence().requires_grad_(False), "no parameter of the module requires grad"),
        (Kept, "the module cannot be copied: Only Tensors created explicitly"),
    ],
)
def test_what_cannot_be_right_is_refused(module, sentence):
    with pytest.raises(ValueError, match=sentence):
        meta_gradient(problem_of(module().double()), 0.3, 2)


def test_weight_norms_second_derivative_is_still_wrong_in_pytorch():
    """The reason for the refusal; when this fails, weight_norm has been mended and the refusal can go."""
    torch.manual_seed(0)
    g = torch.rand(3, 1, dtype=torch.float64, requires_grad=True)
    v = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    layer = parametrizations.weight_norm(nn.Linear(4, 3).double())

    def weight(v, g):
        return functional_call(layer.parametrizations.weight, {"original0": g, "original1": v}, ())

    assert torch.autograd.gradcheck(weight, (v, g))
    assert not torch.autograd.gradgradcheck(weight, (v, g), raise_exception=False)


def test_attention_says_which_kernel_can_be_differentiated_twice():
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    problem = problem_of(nn.Sequential(nn.Unflatten(1, (1, 6)), layer, nn.Flatten(), nn.Linear(6, 3)).double())
    with pytest.raises(ValueError, match="cannot be differentiated twice .*sdpa_kernel"):
        meta_gradient(problem, 0.3, 2)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = [meta_gradient(problem, 0.3, 2, mode).gradient["rate"].item() for mode in MODES]
    assert found == pytest.approx([found[0]] * len(MODES), rel=1e-10)


def test_no_inner_batches_get_a_sentence():
    with pytest.raises(ValueError, match="inner is empty: give at least one batch"):
        FromModule(nn.Linear(6, 3), F.cross_entropy, [], batches(1)[0])


# What an adversarial reader found: each of these gave a wrong number without a word.


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


class Regularised(Small):
    """Lists its own parameters while it computes."""

    def forward(self, x):
        like = next(self.parameters())
        return super().forward(x.to(like.dtype)) * (1 + sum((p**2).sum() for p in self.parameters()))


class Aliased(Small):
    """Keeps a weight in a list, where no other weight can be put."""

    def __init__(self):
        super().__init__()
        self.weights = [self.last.weight]

    def forward(self, x):
        return nn.functional.linear(torch.tanh(self.first(x)), self.weights[0], self.last.bias)


class Counting(Small):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls


class Averaging(Small):
    """Writes a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, x):
        out = super().forward(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(out.mean(0))
        return out + self.mean


class Clamping(Small):
    """Writes into the weights that it is given."""

    def forward(self, x):
        self.first.weight.data.clamp_(-0.2, 0.2)
        return super().forward(x)


class Checkpointing(Small):
    def forward(self, x):
        hidden = torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(self.first(x)), x, use_reentrant=False)
        return self.last(hidden)


def hooked():
    module = Small()
    module.first.weight.register_hook(lambda g: g.clamp(-0.01, 0.01))
    return module


def hooked_layer():
    module = Small()
    module.first.register_full_backward_hook(lambda layer, grads, outs: grads)
    return module


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_module_may_list_its_own_parameters(steps):
    torch.manual_seed(0)
    module = Regularised().double()
    expected = by_functional_call(module, steps, 0.01)
    for mode in MODES:
        found = meta_gradient(problem_of(module), 0.01, steps, mode).gradient["rate"].item()
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (Aliased, "uses the module's own parameter 'last.weight'"),
        (Counting, "the same weights give the loss .* and then"),
        (Averaging, "writes its buffer or frozen parameter 'mean'"),
        (Clamping, "writes its weight 'first.weight'"),
        (Checkpointing, "if the module uses torch.utils.checkpoint, turn it off"),
        (hooked, "parameter 'first.weight' has a gradient hook"),
        (hooked_layer, "first has backward hooks"),
        (lambda: nn.Sequential(nn.Embedding(4, 6, scale_grad_by_freq=True)), "is an Embedding with scale_grad_by_freq"),
    ],
)
def test_what_is_no_function_of_its_weights_is_refused_each_time(module, sentence):
    torch.manual_seed(0)
    module = module().double()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for _ in range(2):
        with pytest.raises(ValueError, match=sentence):
            meta_gradient(problem_of(module), 0.1, 2)
    problem = None
    for _ in range(2):  # the same problem a second time as well
        with pytest.raises(ValueError, match=sentence):
            problem = problem or problem_of(module)
            meta_gradient(problem, 0.1, 2)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_criterion_that_reads_the_modules_own_parameters_is_refused():
    module = Small().double()
    *inner, outer = batches(4)

    def decayed(prediction, y):
        return F.cross_entropy(prediction, y) + 0.05 * sum((p**2).sum() for p in module.parameters())

    with pytest.raises(ValueError, match="uses the module's own parameter '(first|last)"):
        meta_gradient(FromModule(module, decayed, inner, outer), 0.1, 2)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_scripted_module_is_refused():
    with pytest.raises(ValueError, match="compiled by torch.jit: give the plain module"):
        problem_of(torch.jit.script(nn.Sequential(nn.Linear(6, 3))))


def test_a_problem_can_be_copied_and_the_copy_is_another():
    module = made("plain")
    problem = problem_of(module)
    expected = meta_gradient(problem, 0.3, 3).gradient["rate"]
    twin = copy.deepcopy(problem)
    assert torch.equal(meta_gradient(twin, 0.3, 3).gradient["rate"], expected)
    with torch.no_grad():
        module[0].weight.zero_()
    assert torch.equal(meta_gradient(twin, 0.3, 3).gradient["rate"], expected)
    assert not torch.equal(meta_gradient(problem, 0.3, 3).gradient["rate"], expected)


def test_two_threads_may_share_a_problem():
    problem = problem_of(made("plain"))
    expected = {rate: meta_gradient(problem, rate, 20).gradient["rate"] for rate in (0.1, 0.2)}
    with ThreadPoolExecutor(2) as pool:
        rates = [0.1, 0.2] * 8
        found = list(pool.map(lambda rate: meta_gradient(problem, rate, 20).gradient["rate"], rates))
    assert all(torch.equal(one, expected[rate]) for one, rate in zip(found, rates, strict=True))


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_autocast_does_not_see_old_weights(steps):
    module = made("plain").float()
    *inner, outer = [Batch(b.x.float(), b.y) for b in batches(4)]
    problem = FromModule(module, F.cross_entropy, inner, outer)
    with torch.autocast("cpu", torch.bfloat16):
        reverse, forward = (meta_gradient(problem, 0.5, steps, mode) for mode in ("reverse", "forward"))
    assert forward.outer_loss.item() == pytest.approx(reverse.outer_loss.item(), rel=1e-3)
    assert forward.gradient["rate"].item() == pytest.approx(reverse.gradient["rate"].item(), rel=0.05)


def test_weights_of_another_module_are_refused():
    problem = problem_of(made("plain"))
    weights = problem.initial_weights()
    with pytest.raises(ValueError, match=r"weights\['0.bias'\] has the shape none: the module's has \(6,\)"):
        meta_gradient(problem, 0.1, 2, weights={name: w for name, w in weights.items() if name != "0.bias"})
    with pytest.raises(ValueError, match=r"weights\['0.bias'\] has the shape \(1,\)"):
        meta_gradient(problem, 0.1, 2, weights=weights | {"0.bias": weights["0.bias"][:1]})
    with pytest.raises(ValueError, match="give weights with a first dimension of 2"):
        meta_gradient(problem, [0.1, 0.2], 2, "batched", weights=weights)


def test_random_numbers_are_put_back_after_a_refusal():
    problem, state = problem_of(sequence(nn.Dropout()).double()), torch.get_rng_state()
    with pytest.raises(ValueError, match="draws random numbers"):
        meta_gradient(problem, 0.3, 2)
    assert torch.equal(torch.get_rng_state(), state)


# The engine's leftovers: what PyTorch itself differentiates a second time wrongly, and switches that surround a call.


class Tanh(torch.autograd.Function):
    """Right in any order."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


class Once(Tanh):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


class Detaching(Tanh):
    @staticmethod
    def backward(ctx, grad):
        return grad * (1 - torch.tanh(ctx.saved_tensors[0].detach()) ** 2)


class Doubling(Tanh):
    """Its first derivative is twice the right one."""

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


class Leaky(torch.autograd.Function):
    """With a kink, and right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def backward(ctx, grad):
        return torch.where(ctx.saved_tensors[0] > 0, grad, 0.1 * grad)


class Using(Small):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.last(self.function.apply(self.first(x)))


class ByHand(Small):
    """Weight normalisation without the layer that torch.nn.utils makes."""

    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.rand(3, 1) + 1)

    def forward(self, x):
        return F.linear(torch.tanh(self.first(x)), torch._weight_norm(self.last.weight, self.g, 0), self.last.bias)


def slope_of(problem, rate, steps):
    up, down = (meta_gradient(problem, rate + d, steps, "reverse").outer_loss.item() for d in (1e-6, -1e-6))
    return (up - down) / 2e-6


@pytest.mark.parametrize("mode", [*MODES, "batched"])
@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (partial(Using, Once), "uses Once, a torch.autograd.Function that is once_differentiable"),
        (partial(Using, Detaching), "that has a second derivative of .* where differences see"),
        (partial(Using, Doubling), "that has a derivative of .* where differences see"),
        (ByHand, "calls torch._weight_norm, whose second derivative is wrong"),
    ],
)
def test_what_would_be_differentiated_wrongly_a_second_time_is_refused(module, sentence, mode):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match=sentence):
        meta_gradient(problem_of(module().double()), 0.3 if mode != "batched" else [0.3], 3, mode)


@pytest.mark.parametrize("function", [Tanh, Leaky])
def test_a_function_of_ones_own_that_is_right_is_used(function):
    torch.manual_seed(0)
    problem = problem_of(Using(function).double())
    for mode in MODES:
        found = meta_gradient(problem, 0.3, 3, mode).gradient["rate"].item()
        assert found == pytest.approx(slope_of(problem, 0.3, 3), rel=1e-6)


class Single(Detaching):
    """Knows float32 alone."""

    @staticmethod
    def forward(ctx, x):
        assert x.dtype == torch.float32
        return Detaching.forward(ctx, x)


class OnceSingle(Single):
    backward = Once.backward


def test_in_float32_a_function_is_measured_in_a_float64_copy_where_there_can_be_one():
    *inner, outer = [Batch(b.x.float(), b.y) for b in batches(4)]

    def found(function):
        torch.manual_seed(0)
        problem = FromModule(Using(function), F.cross_entropy, inner, outer)
        return meta_gradient(problem, 0.3, 3).gradient["rate"], problem.learned["first.weight"].dtype

    for right in (Tanh, Leaky):
        assert found(right)[0].isfinite() and found(right)[1] == torch.float32
    with pytest.raises(ValueError, match="second derivative of .* where differences see"):
        found(Detaching)
    with pytest.raises(ValueError, match="is once_differentiable"):
        found(OnceSingle)
    assert found(Single)[0].isfinite()  # wrong, and nothing can see it: the docstring says so


def test_a_once_differentiable_criterion_is_seen_too():
    *inner, outer = [Batch(b.x, torch.zeros(8, 3, dtype=torch.float64)) for b in batches(4)]
    problem = FromModule(made("plain"), lambda out, y: Once.apply(((out - y) ** 2).mean()), inner, outer)
    with pytest.raises(ValueError, match="uses Once, .* is once_differentiable"):
        meta_gradient(problem, 0.3, 2)


@pytest.mark.parametrize("mode", [*MODES, "batched"])
def test_cached_parametrizations_are_refused_where_they_would_hold_the_first_weights(mode):
    problem, rate = problem_of(made("parametrized")), 0.3 if mode != "batched" else [0.3]
    expected = meta_gradient(problem, rate, 3, mode).gradient["rate"]
    for each in (problem, problem_of(made("parametrized"))):
        with parametrize.cached(), pytest.raises(ValueError, match=r"inside torch.nn.utils.parametrize.cached\(\)"):
            meta_gradient(each, rate, 3, mode)
        assert torch.equal(meta_gradient(each, rate, 3, mode).gradient["rate"], expected)
    with parametrize.cached():  # no parametrization, nothing to hold
        assert meta_gradient(problem_of(made("plain")), rate, 3, mode).gradient["rate"].isfinite().all()


def test_a_seeded_loss_in_many_threads_draws_its_own_numbers():
    torch.manual_seed(0)
    drawing, plain = problem_of(sequence(nn.Dropout(0.5)).double()), problem_of(made("plain"))

    def work(seed):
        if seed is None:
            return meta_gradient(plain, 0.3, 20).gradient["rate"].item()
        return meta_gradient(drawing, 0.3, 20, generator=torch.Generator().manual_seed(seed)).gradient["rate"].item()

    jobs, state = [0, 1, None] * 6, torch.get_rng_state()
    expected = {seed: work(seed) for seed in (0, 1, None)}
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, jobs)) == [expected[seed] for seed in jobs]
    assert torch.equal(torch.get_rng_state(), state)


def test_inside_transforms_of_torch_func_a_meta_gradient_is_refused_and_a_problems_loss_is_not():
    problem, rates = problem_of(made("plain")), torch.tensor([0.1, 0.2], dtype=torch.float64)
    weights, (batch, *_) = problem.initial_weights(), batches(4)

    def outer_loss(rate):
        return meta_gradient(problem, rate, 2).outer_loss

    def on_rows(x):  # vmap alone would have summed the inner gradients over all rows
        task = Task([Batch(x, batch.y)] * 2, Batch(x, batch.y))
        return meta_gradient(problem.loss, 0.1, 2, weights=weights, task=task).gradient["rate"]

    for call in (
        lambda: torch.func.grad(outer_loss)(rates[0]),
        lambda: torch.func.vmap(outer_loss)(rates),
        lambda: torch.func.vmap(on_rows)(torch.stack([batch.x, 2 * batch.x])),
        lambda: torch.func.jvp(outer_loss, (rates[0],), (rates[1],)),
    ):
        with pytest.raises(ValueError, match="call meta_gradient outside of the transforms of torch.func"):
            call()
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    expected = torch.autograd.grad(problem.loss(leaves, batch), list(leaves.values()))
    found = torch.func.grad(problem.loss)(weights, batch)
    assert all(torch.allclose(found[name], each) for name, each in zip(weights, expected, strict=True))


@pytest.mark.parametrize("steps", [3, 60])
@pytest.mark.parametrize("mode", [*MODES, "truncated", "batched"])
def test_disabled_saved_tensors_hooks_change_no_number(mode, steps):
    problem, rate = problem_of(made("plain")), 0.1 if mode != "batched" else [0.1]
    expected = meta_gradient(problem, rate, steps, mode).gradient["rate"]
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        found = meta_gradient(problem_of(made("plain")), rate, steps, mode)
    assert torch.allclose(found.gradient["rate"], expected, rtol=1e-10)
    if mode == "auto" and steps == 60:
        assert found.mode == "forward" and "cannot be measured where saved-tensors hooks are disabled" in found.why


def test_a_loss_of_ones_own_is_tried_out_too_and_refused_each_time():
    weights, (batch, *_) = {"w": torch.ones(6, 3, dtype=torch.float64)}, batches(1)
    task = Task([batch] * 3, batch)

    def loss(function, weights, batch):
        return F.cross_entropy(function.apply(batch.x @ weights["w"]), batch.y)

    once, right = partial(loss, Once), partial(loss, Tanh)
    for _ in range(2):
        for mode in MODES:
            with pytest.raises(ValueError, match="uses Once, a torch.autograd.Function that is once_differentiable"):
                meta_gradient(once, 0.1, 3, mode, weights=weights, task=task)

    def outer_loss(rate):
        return meta_gradient(right, rate, 3, "reverse", weights=weights, task=task).outer_loss.item()

    slope = (outer_loss(0.1 + 1e-6) - outer_loss(0.1 - 1e-6)) / 2e-6
    for mode in MODES:
        found = meta_gradient(right, 0.1, 3, mode, weights=weights, task=task).gradient["rate"].item()
        assert found == pytest.approx(slope, rel=1e-6)


class OfOnesOwn:
    """A problem of three functions, which cannot be remembered."""

    __hash__ = None

    def initial_weights(self, generator):
        return {"w": torch.ones(6, 3, dtype=torch.float64)}

    def sample(self, inner_steps, generator):
        return Task([batches(1)[0]] * inner_steps, batches(1)[0])

    def loss(self, weights, batch):
        return F.cross_entropy(Detaching.apply(batch.x @ weights["w"]), batch.y)


def test_a_problem_of_ones_own_is_tried_out_too():
    for _ in range(2):
        with pytest.raises(ValueError, match="Detaching, .* has a second derivative of .* where differences see"):
            meta_gradient(OfOnesOwn(), 0.1, 2)


class Raising(Tanh):
    """A backward that differentiates nothing a second time, and says so."""

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise RuntimeError("once is enough")
        return grad * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


def test_a_backward_that_raises_when_it_is_differentiated_is_told():
    with pytest.raises(ValueError, match=r"uses Raising, .* raises RuntimeError .* \(once is enough\)"):
        meta_gradient(problem_of(Using(Raising).double()), 0.3, 3)


@pytest.mark.parametrize("mode", [*MODES, "batched"])
def test_weight_norm_in_a_function_of_ones_own_is_refused(mode):
    torch.manual_seed(0)
    weights = {"v": torch.randn(3, 6, dtype=torch.float64), "g": torch.rand(3, 1, dtype=torch.float64) + 1}
    batch, runs = batches(1)[0], mode == "batched"
    given = {"weights": {name: w.expand(2, *w.shape) for name, w in weights.items()} if runs else weights}

    def loss(weights, batch):
        return F.cross_entropy(batch.x @ torch._weight_norm(weights["v"], weights["g"], 0).T, batch.y)

    def by_hand(weights, batch):
        v, g = weights["v"], weights["g"]
        return F.cross_entropy(batch.x @ (g * v / v.norm(dim=1, keepdim=True)).T, batch.y)

    def run(loss, rate, mode):
        return meta_gradient(loss, rate, 3, mode, task=Task([batch] * 3, batch), **given)

    with pytest.raises(ValueError, match="calls torch._weight_norm, whose second derivative is wrong"):
        run(loss, [0.3, 0.3] if runs else 0.3, mode)
    if not runs:
        slope = (run(by_hand, 0.3 + 1e-6, mode).outer_loss - run(by_hand, 0.3 - 1e-6, mode).outer_loss).item() / 2e-6
        assert run(by_hand, 0.3, mode).gradient["rate"].item() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("function", [Once, Detaching])
def test_a_function_in_a_rate_model_is_right_by_reverse_modes_and_refused_by_forward_mode(function):
    meta = {"slope": torch.tensor(0.2, dtype=torch.float64), "offset": torch.tensor(0.1, dtype=torch.float64)}

    def model(meta, loss, weights):
        return dict.fromkeys(weights, function.apply(meta["slope"] * loss + meta["offset"]))

    def run(slope, mode):
        return meta_gradient(problem_of(made("plain")), Learned(model, meta | {"slope": slope}), 3, mode)

    ends = [run(meta["slope"] + d, "reverse").outer_loss.item() for d in (1e-6, -1e-6)]
    for mode in ("reverse", "checkpointed"):
        found = run(meta["slope"], mode).gradient["slope"].item()
        assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
    with pytest.raises(ValueError, match=f"the rate model uses {function.__name__}, which mode 'forward' would"):
        run(meta["slope"], "forward")


def test_kinks_in_a_large_network_hide_no_wrong_function():
    """Of 200,000 units some pass their kink on the way of the wider differences."""
    x, y = torch.randn(500, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), torch.zeros(500, 3)
    torch.manual_seed(0)
    layers = nn.Linear(6, 400), nn.ReLU(), nn.Linear(400, 6), Using(Detaching)
    problem = FromModule(nn.Sequential(*layers).double(), F.mse_loss, [Batch(x, y.double())], Batch(x, y.double()))
    with pytest.raises(ValueError, match="second derivative of .* where differences see"):
        meta_gradient(problem, 0.01, 2)


@pytest.mark.parametrize("whole", [True, False])
def test_a_compiled_module_is_refused_in_words_of_its_own(whole):
    module = made("plain")
    if whole:
        problem = problem_of(torch.compile(module, backend="aot_eager"))
    else:
        problem = problem_of(nn.Sequential(module, torch.compile(nn.Linear(3, 3).double(), backend="aot_eager")))
    with pytest.raises(ValueError, match="runs through torch.compile, which cannot be differentiated twice"):
        meta_gradient(problem, 0.3, 3)
    eager = problem_of(torch.compile(module, backend="eager"))
    expected = meta_gradient(problem_of(module), 0.3, 3).gradient["rate"]
    assert torch.allclose(meta_gradient(eager, 0.3, 3).gradient["rate"], expected)
