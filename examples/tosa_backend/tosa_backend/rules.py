"""The table of operators: what TOSA takes of each, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import GetOp, SplatOp
from glow_mlir.dialects.shapes import element_of, has_static_shape, is_empty, rank_of
from glow_mlir.ir.traversal import function_of
from glow_mlir.support.dataclass import dataclass
from tosa_backend.builder import TosaBuilder
from tosa_backend.elements import is_held

MAX_AXES = 6
"""Axes of a tensor at the level 8K of TOSA."""

MODULES = (
    "body",
    *(f"emitters.{name}" for name in ("codes", "convolution", "functions", "indexing", "matrices")),
    *(f"emitters.{name}" for name in ("movement", "pooling", "reductions", "resize")),
)
"""Where rules are; they are imported when the first one is asked for."""

Emit = Callable[[Any, TosaBuilder], SSAValue]
"""Writes an operator, and gives what stands for its result."""


@dataclass(frozen=True)
class Rule:
    """How TOSA executes an operator: where it does, by types, shapes and properties, and what is written then."""

    accepts: Callable[[Any], bool]
    emit: Emit


RULES: dict[type[Operation], Rule] = {}
"""Operator → its rule; a class of operators has one for all that have none of their own."""


def _always(op: Operation) -> bool:
    return True


def emits(*operators: type[HighOp], when: Callable[[Any], bool] = _always) -> Callable[[Emit], Emit]:
    """Register how operators are written, where `when` holds of them."""

    def register(function: Emit) -> Emit:
        for operator in operators:
            RULES[operator] = Rule(when, function)
        return function

    return register


@cache
def rules() -> Mapping[type[Operation], Rule]:
    """The whole table."""
    for name in MODULES:
        import_module(f"tosa_backend.{name}")
    return RULES


def rule_of(op: Operation) -> Rule | None:
    """The rule of an operator, or of the nearest class of operators that it belongs to."""
    known = rules()
    return next((known[kind] for kind in type(op).__mro__ if kind in known), None)


def executes(op: Operation) -> bool:
    """Whether TOSA executes an operator as it is."""
    rule = rule_of(op)
    values = (*op.operands, *op.results)
    return rule is not None and not op.regions and all(map(is_tensor, values)) and rule.accepts(op)


def is_tensor(value: SSAValue) -> bool:
    """Whether TOSA has tensors of a type: static, of a few axes, with elements that it holds."""
    is_small = has_static_shape(value) and rank_of(value) <= MAX_AXES
    return is_small and not is_empty(value) and is_held(element_of(value))


def is_constant(value: SSAValue) -> bool:
    """Whether the elements of a value are known when a model is compiled."""
    owner = value.owner
    if not isinstance(owner, GetOp):
        return isinstance(owner, SplatOp)
    return owner.storage_name not in function_of(owner).binding_names
