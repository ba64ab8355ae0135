"""DDP averages gradients in hooks of .backward() on the wrapped module's parameters; autograd.grad and functional_call
never fire them.
"""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

META = {
    "title": "How to use l2l.algorithms.MAML correctly with nn.DistributedDataParallel?",
    "source": "https://github.com/learnables/learn2learn/issues/170",
    "kind": "distributed",
    "style": "script",
}

D = torch.float64
X = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.3]], dtype=D)
Y = torch.tensor([[1.0], [0.0], [2.0]], dtype=D)


def work(rank, path, fixed, q):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    torch.manual_seed(0)
    m = DDP(torch.nn.Linear(2, 1).double())
    (w,) = torch.autograd.grad(((m(X * (rank + 1)) - Y) ** 2).mean(), m.module.weight)  # GUILTY
    if fixed:
        dist.all_reduce(w)
        w /= 2
    q.put((rank, round(float(w.sum()), 6)))
    dist.barrier()
    dist.destroy_process_group()


def go(fixed):
    ctx = mp.get_context("fork")
    q = ctx.Queue()
    path = tempfile.mktemp()
    ps = [ctx.Process(target=work, args=(r, path, fixed, q)) for r in (0, 1)]
    [p.start() for p in ps]
    got = dict(q.get(timeout=100) for _ in ps)
    [p.join() for p in ps]
    return {"ranks_agree": got[0] == got[1]}


def run():
    return go(False)


def run_fixed():
    return go(True)
