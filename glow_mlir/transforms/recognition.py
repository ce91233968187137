"""Rules that replace what a formula matches by one operator, and how a pass applies a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
from glow_mlir.transforms.formulas import Formula
from glow_mlir.transforms.matching import Match, Matcher
from glow_mlir.transforms.rewriting import erase_dead, fuse_locations, high_functions, replace

Build = Callable[[Match, Emitter], SSAValue | None]


@dataclass(frozen=True)
class Rule:
    """A formula, and what computes the same; `build` gives `None` where it does not after all."""

    formula: Formula
    build: Build


def apply_rules(module: ModuleOp, rules: Sequence[Rule]) -> None:
    """
    Replace what the formulas of `rules` match, from the first operator of each function to the last.

    An operator is tried as the root of a formula when all it depends on has been rewritten, so that rules build on one
    another. Of several rules that match, the first in the table wins.
    """
    by_root: dict[type[Operation], list[Rule]] = {}
    for rule in rules:
        for root in rule.formula.roots():
            by_root.setdefault(root, []).append(rule)
    storage = Storage(module)
    matcher = Matcher(storage)
    for function in high_functions(module):
        for op in list(function.block.ops):
            if type(op) in by_root and op.parent is not None and is_float(element_of(op.results[0])):
                assert isinstance(op, HighOp)
                _apply_first(op, by_root[type(op)], matcher)
        erase_dead(function.block)


def _apply_first(op: HighOp, rules: Sequence[Rule], matcher: Matcher) -> None:
    for rule in rules:
        match = matcher.find(rule.formula, op)
        if match is not None and _replace(op, rule, match, matcher.storage):
            return


def _replace(op: HighOp, rule: Rule, match: Match, storage: Storage) -> bool:
    """Replace the result of `op` by what the rule builds; whether that fits."""
    emit = Emitter(op, storage)
    try:
        value = rule.build(match, emit)
    except VerifyException:  # The operator does not take such operands: the rule does not fit.
        value = None
    if value is None or value.type != op.results[0].type:
        for new in reversed(emit.emitted):
            _erase(new)
        return False
    location = fuse_locations(covered.location for covered in reversed(match.ops))
    for new in emit.emitted:
        new.location = location
    replace(op, [value])
    for covered in match.ops[1:]:
        if covered.parent is not None and not any(result.uses for result in covered.results):
            _erase(covered)
    return True


def _erase(op: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)
