import torch

META = {
    "id": "h052",
    "kind": "no-grad-update",
    "verdict": "cut",
    "cause": "The update function is decorated with torch.no_grad.",
}


def _apply_update(params, grads, lr):
    return {k: (params[k] - lr * grads[k]).requires_grad_() for k in params}


@torch.no_grad()  # GUILTY
def apply_update(params, grads, lr):  # ALSO
    return _apply_update(params, grads, lr)


def forward(p, ids):
    e = p["emb"][ids].mean(1)
    return e @ p["proj"]


IDS = torch.tensor([[0, 1, 2], [3, 1, 0], [2, 2, 4]])
TGT = torch.tensor([0, 1, 1])


def meta_params():
    return {"lr": torch.tensor(0.5, requires_grad=True)}


def meta_step(meta, upd=apply_update):
    g = torch.Generator().manual_seed(3)
    p = {
        "emb": torch.randn(5, 4, generator=g).requires_grad_(),
        "proj": torch.randn(4, 2, generator=g).requires_grad_(),
    }
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(forward(p, IDS), TGT)
        grads = dict(zip(p, torch.autograd.grad(loss, list(p.values()), create_graph=True)))
        p = upd(p, grads, meta["lr"])
    return torch.nn.functional.cross_entropy(forward(p, IDS.flip(0)), TGT)


def meta_step_fixed(meta):
    return meta_step(meta, _apply_update)
