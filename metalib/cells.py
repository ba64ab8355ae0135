"""The doctor for code that is not a function: `%%diagnose lr` on top of a cell, or `diagnose_source(code, ...)`.

The cell is run as it is, except that the named meta-parameters get the doctor's values where they are first assigned,
and that it ends where it would differentiate its outer loss.
"""

import ast
import linecache
from itertools import count

import torch

from metalib.diagnosis import Diagnosis
from metalib.doctor import diagnose
from metalib.outer import diagnose_loop
from metalib.report import Undecided

numbers = count(1)


def diagnose_source(code: str, names: list[str], namespace: dict, loss: str | None = None) -> Diagnosis:
    """Diagnose a piece of code.

    code       source text; line numbers in the diagnosis are those of this text
    names      the meta-parameters: variables that the code assigns at its top level, or finds in `namespace`. Without
               any, the code is taken as a whole training loop.
    namespace  the variables that the code may use; the code sees a copy of the dict
    loss       the outer loss's variable. By default what the last `.backward()`, or `autograd.grad()` for a
               meta-parameter, at the top level is asked of, or else the value of the last line.

    >>> import torch
    >>> from metalib import diagnose_source
    >>> code = '''
    ... rate = torch.tensor(0.1, requires_grad=True)
    ... w = 1 - rate.item()
    ... torch.tensor(w).double() ** 2
    ... '''
    >>> found = diagnose_source(code, ["rate"], {"torch": torch})
    >>> print(found.cause, "in", found.location)
    left_torch in line 3 of the cell
    """
    filename = f"<cell {next(numbers)}>"
    linecache.cache[filename] = len(code), None, code.splitlines(keepends=True), filename
    tree = ast.parse(code, filename)
    if not names:
        program = compile(tree, filename, "exec")
        return diagnose_loop(lambda: exec(program, dict(namespace)))
    body = _without_the_end(tree.body, names, loss)
    missing = [name for name in names if name not in namespace and name not in _assigned(body)]
    if missing:
        raise Undecided(f"{missing[0]!r} is neither assigned at the top level of this code nor known: name one that is")
    program = compile(_hooked(ast.Module(body, []), set(names)), filename, "exec")

    def run(given) -> dict:
        scope = dict(namespace) | {name: p for name, p in given.items() if name in namespace}
        scope["__given__"] = lambda name, value: given.get(name, value)
        exec(program, scope)
        return scope

    start = {name: _tensor(name, value) for name, value in run({}).items() if name in names}

    def step(meta):
        return run(meta)["__loss__"]

    return diagnose(step, start)


def _without_the_end(body: list[ast.stmt], names: list[str], loss: str | None) -> list[ast.stmt]:
    """The statements up to the one that differentiates the outer loss, with `__loss__ = ...` in its place."""
    for at in range(len(body) - 1, -1, -1):
        taken = [node for node in ast.walk(body[at]) if isinstance(node, ast.Call) and _ends(node, names)]
        if not taken or isinstance(body[at], ast.For | ast.While | ast.FunctionDef | ast.ClassDef | ast.With):
            continue
        call = taken[0]
        root = call.func.value if call.func.attr == "backward" else call.args[0]
        return [*body[:at], _keep(ast.Name(loss, ast.Load()) if loss else root, body[at])]
    last = body[-1] if body else None
    if loss:
        return [*body, _keep(ast.Name(loss, ast.Load()), last)]
    if isinstance(last, ast.Expr):
        return [*body[:-1], _keep(last.value, last)]
    raise Undecided("no outer loss was found: end the code with its name, or with outer_loss.backward()")


def _ends(node: ast.Call, names: list[str]) -> bool:
    """Is it `outer.backward()`, or an autograd.grad that asks for a meta-parameter?"""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("backward", "grad"):
        return False
    asked = {part.id for given in node.args[1:] for part in ast.walk(given) if isinstance(part, ast.Name)}
    return node.func.attr == "backward" or bool(asked & set(names))


def _keep(value: ast.expr, place: ast.stmt) -> ast.stmt:
    kept = ast.Assign([ast.Name("__loss__", ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(kept, place))


def _assigned(body: list[ast.stmt]) -> set[str]:
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _hooked(tree: ast.Module, names: set[str]) -> ast.Module:
    """After a meta-parameter's first assignment, `name = __given__("name", name)` on the same line."""
    body, left = [], set(names)
    for node in tree.body:
        body.append(node)
        for name in sorted(left & _assigned([node])):
            left.remove(name)
            call = ast.Call(ast.Name("__given__", ast.Load()), [ast.Constant(name), ast.Name(name, ast.Load())], [])
            body.append(ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), node))
    return ast.fix_missing_locations(ast.Module(body, []))


def _tensor(name: str, value) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        raise Undecided(f"{name!r} is {value!r}: name a floating tensor, such as torch.tensor(0.1, requires_grad=True)")
    return value.detach()


def load_ipython_extension(shell) -> None:
    """`%load_ext metalib` gives notebooks the cell magic `%%diagnose lr`."""

    def magic(line: str, cell: str):
        names = line.replace(",", " ").split()
        try:
            return diagnose_source("\n" + cell, names, shell.user_ns)  # the magic's own line is the cell's first
        except Undecided as refusal:
            print(f"undecided: {refusal}")

    shell.register_magic_function(magic, magic_kind="cell", magic_name="diagnose")
