"""Your own module as a problem: the numbers of functional_call, the module untouched, and refusals in words."""

import copy
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from metalib.metagrad import meta_gradient
from metalib.own import FromModule
from metalib.problems import Batch

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
