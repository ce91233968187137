"""
Checks of a serialized program before PyTorch reads it.

PyTorch evaluates the expressions of sizes as Python, and looks up the functions of nodes by name in its modules.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, cast

import sympy
from torch.utils._sympy import functions

from glow_mlir.errors import UnsupportedError

TARGETS = re.compile(
    r"torch\.ops\.\w+\.\w+(\.\w+)?"
    r"|_operator\.(add|sub|mul|floordiv|truediv|mod|pow|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem)"
    r"|math\.(ceil|floor|trunc|sqrt)|torch\.sym_\w+|round"
)
"""The functions that nodes may call: operators, and arithmetic on sizes."""

MAX_FORMULA = 10_000
"""The maximum number of characters of an expression of sizes."""

_SYMBOL = re.compile(r"[A-Za-z_]\w*")

_ALLOWED = (
    ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp,
    ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
"""The syntax of expressions of sizes."""


def check_program(program: Any) -> None:
    """Raise `UnsupportedError` for a node that calls no operator, and for an expression that is no formula."""
    for name, value in _strings(program):
        if name == "target" and not TARGETS.fullmatch(value):
            raise UnsupportedError(f"a node calls '{value}', which is no operator")
        if name == "expr_str" and not _is_formula(value):
            raise UnsupportedError(f"the size {value!r} is no formula")


def _strings(value: Any) -> Iterable[tuple[str, str]]:
    """The names and values of the texts in a program that PyTorch evaluates or looks up."""
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            # The functions of nodes; names of parameters are targets as well.
            names = ("expr_str", "target") if "metadata" in fields and "inputs" in fields else ("expr_str",)
            yield from ((name, str(fields[name])) for name in names if name in fields)
            pending += fields.values()
        elif isinstance(item, list):
            pending += cast("list[Any]", item)


def _is_formula(text: str) -> bool:
    """Whether a text is a formula of symbols, numbers and sympy's classes."""
    if len(text) > MAX_FORMULA:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return False
    return all(map(_is_allowed, ast.walk(tree)))


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and _is_class(node.func.id)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) or bool(_SYMBOL.fullmatch(str(node.value)))
    return isinstance(node, _ALLOWED)


def _is_class(name: str) -> bool:
    """Whether a name is a class of expressions of sympy or of PyTorch."""
    found = getattr(functions, name, None) or getattr(sympy, name, None)
    return isinstance(found, type) and issubclass(found, sympy.Basic) and name != "Lambda"
