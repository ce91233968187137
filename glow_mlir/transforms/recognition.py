"""Rules that replace what a formula matches by one operator, and how a pass applies a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, fuse_locations, high_functions, replace
from glow_mlir.transforms.formulas import Formula, Needed
from glow_mlir.transforms.matching import Match, Matcher

Build = Callable[[Match, Emitter], SSAValue | None]


@dataclass(frozen=True)
class Rule:
    """A formula, and what computes the same; `build` gives `None` where it does not after all."""

    formula: Formula
    build: Build

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """Sets of operators of which a graph where the rule applies has one each: a quick test."""
        return self.formula.needs()


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
        ops = list(function.block.ops)
        present = {type(op) for op in ops}
        for op in ops:
            if type(op) in by_root and op.parent is not None and is_float(element_of(op.results[0])):
                _apply_first(op, by_root[type(op)], matcher, present)
        erase_dead(function.block)


def _apply_first(op: Operation, rules: Sequence[Rule], matcher: Matcher, present: set[type[Operation]]) -> None:
    """Apply the first rule that matches at `op`; `present` are the operators that there are, and gets new ones."""
    for rule in rules:
        if any(present.isdisjoint(need) for need in rule.needs):
            continue
        match = matcher.find(rule.formula, op)
        emitted = None if match is None else _replace(op, rule, match, matcher.storage)
        if emitted is not None:
            present.update(type(new) for new in emitted)
            return


def _replace(op: Operation, rule: Rule, match: Match, storage: Storage) -> list[Operation] | None:
    """Replace the result of `op` by what the rule builds, and return that; `None` where it does not fit."""
    emit = Emitter(op, storage)
    try:
        value = rule.build(match, emit)
    except VerifyException:  # The operator does not take such operands: the rule does not fit.
        value = None
    if value is None or value.type != op.results[0].type:
        for new in reversed(emit.emitted):
            _erase(new)
        return None
    location = fuse_locations(covered.location for covered in reversed(match.ops))
    for new in emit.emitted:
        new.location = location
    replace(op, [value])
    for covered in match.ops[1:]:
        if covered.parent is not None and not any(result.uses for result in covered.results):
            _erase(covered)
    return emit.emitted


def _erase(op: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)
