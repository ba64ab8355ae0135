"""learn2learn: MAML's clone() and adapt(), with a tensor as lr.

Only the two files that this needs are imported. `import learn2learn` itself also loads data sets and environments: it
needs gym and a torchvision that matches torch, and would only add to its start-up time.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from contestants.on_torch import WithAdam


def _maml():
    """learn2learn.algorithms.maml, its parent packages replaced by empty ones so that their imports do not run."""
    spec = find_spec("learn2learn")
    if spec is None:
        raise ImportError("No module named 'learn2learn'")
    root = Path(spec.submodule_search_locations[0])
    for name, folder in (("learn2learn", root), ("learn2learn.algorithms", root / "algorithms")):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return import_module("learn2learn.algorithms.maml")


MAML = _maml().MAML


class Contestant(WithAdam):
    def __init__(self, task, inner_steps, dtype):
        super().__init__(task, inner_steps, dtype)
        self.maml = MAML(self.module, lr=self.meta[0])

    def outer_loss(self):
        learner = self.maml.clone()
        for x, y in self.batches:
            loss = self.criterion(learner(x), y)
            if self.task.from_loss:
                learner.lr = self.rate_at(loss)
            learner.adapt(loss)
        x, y = self.outer
        return self.criterion(learner(x), y)
