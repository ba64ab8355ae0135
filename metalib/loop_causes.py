"""What can break the loop around a step, each with a sentence for the explanation and one for the repair.

In the sentences, {line} is the guilty line's number and {detail} what was seen in this run.
"""

LOOP_CAUSES = {
    "not_held": (
        "The optimiser built on line {line} does not hold every tensor that is to be learned: one that scales the "
        "inner gradient gets a gradient and is never stepped.",
        "Give the optimiser all meta-parameters, and assert that each of them is in it.",
    ),
    "never_reached": (
        "The backward on line {line} reaches nothing that the optimiser holds.",
        "Compute the outer loss from the meta-parameters; diagnose the step by itself to see where they are lost.",
    ),
    "replaced": (
        "Line {line} makes a new tensor in the place of one that the optimiser holds: the optimiser goes on stepping "
        "the old one.",
        "Change the values in place, under no_grad (p.clamp_(min=0), p.copy_(new)), or build the optimiser later.",
    ),
    "holds_copies": (
        "Line {line} makes copies, and the optimiser steps these; the originals get the gradient and never move.",
        "Give the optimiser the very tensors that the step uses.",
    ),
    "non_leaf": (
        "Line {line} computes the tensor that the optimiser is to step; an optimiser can step only a leaf.",
        "Make the leaf last: torch.tensor(0.1, requires_grad=True), without arithmetic after requires_grad.",
    ),
    "step_first": (
        "Line {line} steps before backward has filled the gradients.",
        "Order: zero_grad(), the outer loss, backward(), step().",
    ),
    "cleared_early": (
        "Line {line} clears the gradients between backward and step, so that there is nothing to apply.",
        "Order: zero_grad(), the outer loss, backward(), step().",
    ),
    "not_cleared": (
        "The gradients of the last outer step are not cleared (line {line}): they add up from step to step.",
        "Call the meta-optimiser's own zero_grad() in every outer step, before backward().",
    ),
    "never_stepped": (
        "The optimiser built on line {line} never steps, though its tensors get gradients.",
        "Call its step() after backward().",
    ),
    "rebuilt": (
        "Line {line} builds the optimiser anew in every outer step, and so forgets its moments.",
        "Build it once, before the loop.",
    ),
    "graph_carried": (
        "The tensor made on line {line} is used in the next outer step with its old graph, which backward has freed.",
        "Cut the outer steps from each other: w = w.detach().requires_grad_(), at the end of each.",
    ),
    "idle_detach": (
        "Line {line} calls detach() and drops the result: the name still stands for the tensor with its graph.",
        "Assign it: h = h.detach().",
    ),
    "grows": (
        "The graph grows with every step{detail}: the weights made on line {line} carry all their history on.",
        "Cut the outer steps from each other: w = w.detach().requires_grad_(); drop retain_graph=True.",
    ),
    "kept_losses": (
        "Line {line} keeps the loss itself, and with it the whole graph of its step.",
        "Keep the number: losses.append(loss.item()).",
    ),
    "grad_cycle": (
        "Line {line} calls backward(create_graph=True), which leaves in .grad a tensor whose graph holds the weight: a "
        "circle that is never freed.",
        "Use torch.autograd.grad(loss, weights, create_graph=True).",
    ),
    "buffers_written": (
        "The call on line {line} is given parameters only, so the module's own running statistics are written: one "
        "task leaves a trace in the next.",
        "Pass copies of the buffers too: {{**weights, **{{name: b.clone() for name, b in model.named_buffers()}}}}.",
    ),
    "same_rows": (
        "Line {line} writes parts of different length that all begin at the same place: they overwrite each other.",
        "Advance the offset by the length of each part.",
    ),
    "piled_up": (
        "The backward on line {line} adds to the .grad of weights that no optimiser holds and nobody clears.",
        "Ask for the meta-gradient alone: torch.autograd.grad(loss, meta) or loss.backward(inputs=meta).",
    ),
    "raised": ("Line {line} raises {detail}.", "Mend this line first."),
}
