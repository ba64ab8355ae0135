"""Two things that a mode over PyTorch's functions cannot see: nn.Parameter(t), and what torch.compile has made."""

from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from metalib.places import stack
from metalib.recording import tensors_in


def watch_parameters(recorder):
    """Record nn.Parameter(t): a new leaf with the content of t."""
    original = nn.Parameter.__new__

    def new(cls, data=None, requires_grad=True):
        made = original(cls, data, requires_grad)
        if isinstance(data, Tensor):
            recorder.extra("Parameter", [data], [made], requires_grad=requires_grad)
        return made

    return patch.object(nn.Parameter, "__new__", staticmethod(new))


def watch_compile(recorder):
    """torch.compile must not see the recorder: what it makes runs without, and counts as one call."""
    original = torch.compile

    def compile_(model=None, **options):
        if model is None:
            return lambda model: compile_(model, **options)
        frames, made = stack()[0], original(model, **options)

        def run(*args, **kwargs):
            TorchFunctionMode.__exit__(recorder, None, None, None)
            try:
                result = made(*args, **kwargs)
            finally:
                TorchFunctionMode.__enter__(recorder)
            call = recorder.extra("compiled", tensors_in((args, kwargs)), tensors_in(result))
            call.frames = frames or call.frames
            return result

        return run

    return patch.object(torch, "compile", compile_)
