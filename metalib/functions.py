"""Autograd's graph, and the user's own torch.autograd.Functions in it."""

import ast
import inspect
import textwrap

import torch

from metalib.places import Frame, is_library
from metalib.report import reachable


def graph_nodes(edges) -> list:
    """All nodes of the graph behind these places."""
    return list(reachable([edge.node for edge in edges if edge is not None]))


def custom_function(node) -> type | None:
    """The user's torch.autograd.Function behind a node of the graph."""
    todo = list(torch.autograd.Function.__subclasses__())
    while todo:
        function = todo.pop()
        todo += function.__subclasses__()
        if node.name() == f"{function.__name__}Backward" and not is_library(_file(function)):
            return function
    return None


def _file(thing) -> str:
    try:
        return inspect.getsourcefile(thing) or ""
    except (TypeError, OSError):
        return ""


def function_line(function: type) -> Frame | None:
    """The line of a torch.autograd.Function to look at: where forward keeps a detached input, where backward is marked
    once_differentiable, or else where backward returns."""
    for method in (function.forward, function.backward):
        code = inspect.unwrap(method).__code__
        try:
            lines, first = inspect.getsourcelines(code)
        except OSError:
            return None
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        if method is function.backward and hasattr(method, "__wrapped__"):
            return Frame(code.co_filename, first + tree.lineno - 1, code.co_name)
        cuts = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ("detach", "data", "item")]
        ends = [n for n in ast.walk(tree) if isinstance(n, ast.Return)] if method is function.backward else []
        if cuts or ends:
            return Frame(code.co_filename, first + (cuts or ends)[-1].lineno - 1, code.co_name)
    return None
