import torch

META = {
    "id": "h015",
    "kind": "inplace-on-leaf",
    "verdict": "raises",
    "cause": "weights -= lr * grad is an in-place write to a leaf that requires grad.",
}

signal = torch.sin(torch.arange(16, dtype=torch.float64) * 0.7)


def conv_loss(kernel, shift):
    out = torch.nn.functional.conv1d(signal[None, None], torch.tanh(kernel)[None, None])
    return (out[0, 0] - signal[shift : shift + out.shape[-1]]).pow(2).sum()


def meta_params():
    return dict(step_size=torch.tensor([0.03, 0.03, 0.05], dtype=torch.float64, requires_grad=True))


def meta_step(meta):
    weights = torch.tensor([0.1, 0.2, 0.1], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        grad = torch.autograd.grad(conv_loss(weights, 1), weights, create_graph=True)[0]
        weights -= meta["step_size"] * grad  # GUILTY
    return conv_loss(weights, 2)


def meta_step_fixed(meta):
    weights = torch.tensor([0.1, 0.2, 0.1], dtype=torch.float64, requires_grad=True)
    for _ in range(2):
        grad = torch.autograd.grad(conv_loss(weights, 1), weights, create_graph=True)[0]
        weights = weights - meta["step_size"] * grad
    return conv_loss(weights, 2)
