"""What can break a meta-gradient, each with a sentence for the explanation and one for the repair.

In the sentences, {line} is the guilty line's number, {meta} the meta-parameter, {detail} what was seen in this run.
"""

CAUSES = {
    # silent cuts
    "data_write": (
        "Line {line} writes through `.data`: the numbers arrive, the history does not: nothing after it knows {meta}.",
        "Do not assign: keep the new weight as a new tensor, w = w - rate * g, and pass it to the model with "
        "torch.func.functional_call.",
    ),
    "data_read": (
        "Line {line} reads `.data`: the same numbers without a history, although they depend on {meta}.",
        "Use the tensor itself, without `.data`.",
    ),
    "detach": (
        "Line {line} detaches a value on the way from {meta} to the outer loss: the value goes on, its gradient stops.",
        "Remove the detach inside the inner loop; detach only between outer steps.",
    ),
    "detached_write": (
        "Line {line} writes in place through a detached tensor: the numbers change, and autograd still differentiates "
        "the old ones.",
        "Make a new tensor instead of writing: g = g * factor, without detach.",
    ),
    "copied": (
        "Line {line} makes a copy without a history of a value that depends on {meta} ({detail}).",
        "Start from the tensor itself, or from t.clone(), which keeps the history.",
    ),
    "parameter_rewrap": (
        "Line {line} wraps a computed tensor in nn.Parameter: that is always a new leaf, with the numbers and without "
        "the history.",
        "Keep the computed tensor in a dict and run the model with torch.func.functional_call(model, weights, inputs).",
    ),
    "left_torch": (
        "Line {line} turns a tensor that depends on {meta} into plain numbers ({detail}); what comes of them has no "
        "history.",
        "Compute with the tensor itself, and use .item() only for what is printed.",
    ),
    "no_grad": (
        "Line {line} computes with {meta} while gradients are switched off{detail}: the result has no history.",
        "Take this line out of the no_grad region and write the update out of place, w = w - rate * g; keep no_grad "
        "for losses that are only printed.",
    ),
    "inference_mode": (
        "Line {line} runs under torch.inference_mode: the result has no history and can get none.",
        "Move this line out of inference_mode.",
    ),
    "optimizer_step": (
        "Line {line} lets an optimiser write the weights: it does so without a history{detail}.",
        "Write the update out of place: w = w - rate * g for each weight.",
    ),
    "optimizer_drops_rate": (
        "Line {line} runs an optimiser that turns its learning rate into a plain number on the way{detail}.",
        "Use one that keeps it (SGD, Adam), or better write the update out of place: w = w - rate * g.",
    ),
    "load_state_dict": (
        "Line {line} loads weights into a module: load_state_dict copies numbers without a history.",
        "Pass the weights to the model with torch.func.functional_call(model, weights, inputs).",
    ),
    "create_graph": (
        "Line {line} asks for the inner gradient without create_graph=True: the gradient's own dependence on the "
        "weights, and through them on {meta}, is lost.",
        "Add create_graph=True on this line.",
    ),
    "no_double_backward": (
        "Line {line} holds a backward that cannot be differentiated once more ({detail}), so the inner gradient has no "
        "right history.",
        "Write this backward with differentiable PyTorch operations and without once_differentiable, or use built-in "
        "operations.",
    ),
    "custom_backward": (
        "Line {line} is in {detail}, whose backward does not match its forward.",
        "Mend that backward; torch.autograd.gradcheck compares the two.",
    ),
    "compiled": (
        "Line {line} compiles what is differentiated twice: a compiled function has no double backward, its gradient "
        "comes back without a right history.",
        "Do not compile the function inside the inner loop, or compile it with backend='eager'.",
    ),
    "checkpoint": (
        "Line {line} uses reentrant checkpointing, which runs a backward inside the backward and cannot be "
        "differentiated twice.",
        "Pass use_reentrant=False.",
    ),
    "hook": (
        "Line {line} registers a hook that changes the gradient on its way back to {meta}.",
        "Remove the hook, or apply the change to the inner gradient itself.",
    ),
    "frozen": (
        "Line {line} switches requires_grad off for a value that depends on {meta}.",
        "Leave requires_grad on for what is to be learned.",
    ),
    "wrong_formula": (
        "Line {line} ({detail}) gives a value whose gradient autograd gets wrong.",
        "Replace this operation by one with a right derivative.",
    ),
    "recomputed": (
        "Line {line} uses checkpointing: its block is computed again in the backward pass, then with other weights "
        "than those it was given.",
        "Hand the weights to the checkpointed function as arguments, or do without checkpointing in the inner loop.",
    ),
    "silent_write": (
        "Line {line} overwrites, past autograd's version counter, what {detail} has saved for the backward pass.",
        "Make a new tensor instead of writing through `.data` or a detached tensor.",
    ),
    # nothing to find in the value
    "flat": (
        "Line {line} ({detail}) gives the same value for all {meta} nearby: the true gradient is zero there.",
        "Use a rule with a slope in its place, such as softmax for argmax or softplus for a clamp.",
    ),
    "shadowed": ("Line {line} gives the meta-parameter's name, {detail}, to something else.", "Use another name."),
    "wrong_name": (
        "Line {line} looks for a meta-parameter {detail}, which is not there, and goes on with something else.",
        "Use the names of the meta-parameters, and meta[name], which raises when a name is wrong.",
    ),
    "not_a_number": (
        "The step returns {detail}, made on line {line}; only one number can be differentiated.",
        "Return loss.mean() or loss.sum().",
    ),
    "default_used": (
        "Line {line} calls a function that has a parameter {detail}, and leaves it at its default, a plain number.",
        "Pass {meta} on.",
    ),
    "result_unused": (
        "The last value that depends on {meta} is made on line {line}, and nothing that reaches the outer loss reads it"
        "{detail}.",
        "Use that value: pass the new weights to the model that computes the outer loss, with functional_call.",
    ),
    "meta_unused": (
        "The step never computes with {meta}.",
        "Use {meta} in the inner update; look for a name that is assigned anew, or a number in its place.",
    ),
    # raises
    "inplace_on_leaf": (
        "Line {line} writes in place to a leaf that requires grad; autograd forbids that.",
        "Make a new tensor: w = w - rate * g.",
    ),
    "inplace_on_saved": (
        "Line {line} overwrites in place what {detail} has saved for the backward pass.",
        "Make a new tensor instead of writing in place: w = w - rate * g, buf = mu * buf + g.",
    ),
    "graph_freed": (
        "Line {line} differentiates and then frees a graph that is needed once more{detail}.",
        "Pass create_graph=True there (or retain_graph=True, if no second derivative is needed).",
    ),
    "no_graph": (
        "Line {line} asks for a gradient of something without a history{detail}.",
        "Give the weights requires_grad=True before the forward pass, and compute it from those very tensors.",
    ),
    "unused_input": (
        "Line {line} asks for the gradient of a tensor that the loss was not computed from{detail}.",
        "Compute the loss from these very tensors, or pass allow_unused=True and handle the None.",
    ),
    "ignored_argument": (
        "The call on line {line} drops the weights: {detail} is passed in and never read.",
        "Hand it on to every layer, or call the model with torch.func.functional_call(model, weights, inputs).",
    ),
    "rebound_name": (
        "Line {line} only gives the name {detail} to another tensor; the module keeps its own.",
        "Pass the weights to the model with torch.func.functional_call(model, weights, inputs).",
    ),
    "frozen_input": (
        "Line {line} asks for the gradient of a tensor that does not require grad{detail}.",
        "Leave that tensor out of the list, or give it requires_grad=True.",
    ),
    "not_a_parameter": (
        "Line {line} assigns a computed tensor where the module has a parameter; a module accepts only nn.Parameter "
        "there, and a wrapped one would have no history.",
        "Pass the weights to the model with torch.func.functional_call(model, weights, inputs).",
    ),
    "raised": ("Line {line} raises {detail}.", "Mend this line first; the meta-gradient comes after."),
    # not finite
    "explodes": (
        "The values grow without bound{detail}: the step on line {line} is too large for so many inner steps.",
        "Start from a smaller rate or fewer inner steps, or clip the inner gradient out of place.",
    ),
    "not_finite": (
        "Line {line} gives the first value that is not finite ({detail}).",
        "Keep its argument inside the domain, for instance with clamp(min=1e-12) before a root, a logarithm or a "
        "division.",
    ),
    "nan_gradient": (
        "The value made on line {line} ({detail}) is finite, but its gradient is not.",
        "Keep its argument away from where the derivative is infinite, for instance sqrt(x + 1e-12); in torch.where "
        "mend the argument, not the result.",
    ),
    # right, but not what was meant
    "sees_update": (
        "The gradient on line {line} also runs through an update that was made from the same tensors before.",
        "Take all gradients first, then update; or differentiate for fresh leaves: x.detach().requires_grad_().",
    ),
    # the verdict stands, the place was not found
    "unnamed": (
        "The doctor did not find the line{detail}.",
        "Compare the step with the functional loop of notebook 05.",
    ),
}
