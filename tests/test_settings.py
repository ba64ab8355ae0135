"""Each wrong choice gets one sentence with the value, what is accepted, and so the next step."""

import math

import numpy as np
import pytest
import torch

from metalib import settings as module
from metalib.settings import Settings, devices
from metalib.train import train
from metalib.unroll import meta_step

BAD = [
    ({"inner_steps": 0}, "inner_steps is 0: give a whole number from 1 to 1,000"),
    ({"inner_steps": -1}, "inner_steps is -1: give a whole number"),
    ({"inner_steps": 10**9}, "inner_steps is 1000000000: give a whole number from 1 to 1,000"),
    ({"inner_steps": 2.5}, "inner_steps is 2.5: give a whole number"),
    ({"inner_steps": "5"}, "inner_steps is '5': give a whole number"),
    ({"inner_steps": True}, "inner_steps is True: give a whole number"),
    ({"outer_steps": 0}, "outer_steps is 0: give a whole number from 1 to 100,000"),
    ({"seed": -1}, "seed is -1: give a whole number from 0"),
    ({"start_rate": 0.0}, "start_rate is 0.0: give a number above 0"),
    ({"start_rate": -0.1}, "start_rate is -0.1: give a number above 0"),
    ({"start_rate": math.nan}, "start_rate is nan: give a number above 0"),
    ({"start_rate": math.inf}, "start_rate is inf: give a number above 0"),
    ({"start_rate": "0.1"}, "start_rate is '0.1': give a number above 0"),
    ({"meta_rate": 0}, "meta_rate is 0: give a number above 0"),
    ({"meta_rate": 1e9}, "meta_rate is 1000000000.0: give a number above 0 and at most 1,000,000"),
    ({"version": "foo"}, "unknown version 'foo': choose one of 'in_place', "),
    ({"version": ["functional"]}, "unknown version ['functional']: choose one of"),
    ({"problem": ""}, "unknown problem '': choose one of 'one weight', "),
    ({"rate": None}, "unknown rate model None: choose one of 'constant', 'per tensor', 'from loss'"),
    ({"dtype": "float16"}, "unknown dtype 'float16': choose one of 'float32', 'float64'"),
    ({"device": "tpu"}, "unknown device 'tpu': choose one of 'cpu', 'cuda', 'mps'"),
    ({"device": ["cpu"]}, "unknown device ['cpu']: choose one of"),
    ({"start_rate": 10**400}, "start_rate is 1000"),
    ({"start_rate": 1e-46}, "start_rate is 1e-46: give at least 1e-12"),
    ({"meta_rate": True}, "meta_rate is True: give a number above 0"),
    ({"seed": 2**32}, "seed is 4294967296: give a whole number from 0 to 4,294,967,295"),
    ({"carry": 1}, "carry is 1: give True or False"),
    ({"truncation": 0}, "truncation is 0: give a whole number from 1 to 1,000"),
    ({"truncation": 3, "inner_steps": 2}, "truncation is 3, more than the inner steps, 2: choose at least 3"),
]


@pytest.mark.parametrize(("choice", "sentence"), BAD)
def test_bad_choice(choice, sentence):
    with pytest.raises(ValueError) as caught:
        Settings(**choice)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, reason in devices().items() if reason])
def test_an_absent_device_is_refused_with_its_reason_when_a_run_starts(name):
    """Not before: the table of a run that was made on another machine can be read on this one."""
    settings = Settings(device=name)
    with pytest.raises(ValueError, match=f"device '{name}' cannot be used: .*Choose one of 'cpu'"):
        next(train(settings))


def test_numbers_of_numpy_become_plain_ones():
    settings = Settings(
        inner_steps=np.int64(3), start_rate=np.float64(0.2), meta_rate=np.float32(0.5), seed=np.uint8(7)
    )
    assert settings == Settings(inner_steps=3, start_rate=0.2, meta_rate=0.5, seed=7)
    assert [type(value) for value in (settings.inner_steps, settings.start_rate, settings.meta_rate)] == [
        int,
        float,
        float,
    ]


def test_every_device_is_listed_and_cpu_is_always_there():
    known = devices()
    assert list(known) == ["cpu", "cuda", "mps"] and known["cpu"] == ""
    assert (known["cuda"] == "") == torch.cuda.is_available()
    assert (known["mps"] == "") == torch.backends.mps.is_available()


def test_mps_has_no_float64(monkeypatch):
    monkeypatch.setattr(module, "devices", lambda: {"cpu": "", "mps": ""})
    assert Settings(device="mps").device == "mps"
    with pytest.raises(ValueError, match="device 'mps' has no float64: choose dtype 'float32'"):
        Settings(device="mps", dtype="float64")
    with pytest.raises(ValueError, match="the referee needs float64.*choose device 'cpu'"):
        meta_step(Settings(device="mps"))
