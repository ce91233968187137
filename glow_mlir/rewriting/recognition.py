"""Patterns that replace a match of a formula by one operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Kinds, Pattern
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.rewriting.formulas import Formula, Needed
from glow_mlir.rewriting.matching import Match, Matcher
from glow_mlir.support.dataclass import dataclass

Build = Callable[[Match, Emitter], SSAValue | None]


@dataclass(frozen=True)
class Recognition(Pattern):
    """
    Formulas in order of precedence, and the operator to build for a match.

    `build` returns `None` to reject a match. Patterns build on one another because operators are visited first to last:
    all operands of a root have been rewritten when it is matched.
    """

    name: str
    formulas: tuple[Formula, ...]
    build: Build

    @property
    def roots(self) -> Kinds:
        return tuple({root: None for formula in self.formulas for root in formula.roots()})

    @cached_property
    def _needs(self) -> tuple[tuple[Formula, tuple[Needed, ...]], ...]:
        """Each formula with the sets of operators that a function must contain for a match: a quick test."""
        return tuple((formula, formula.needs()) for formula in self.formulas)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(rewriter, Rewriter)
        if not is_float(element_of(op.results[0])):
            return
        for formula, needs in self._needs:
            if any(rewriter.present.isdisjoint(need) for need in needs):
                continue
            match = Matcher(rewriter.storage).find(formula, op)
            if match is not None and self._replace(op, match, rewriter):
                return

    def _replace(self, op: Operation, match: Match, rewriter: Rewriter) -> bool:
        """Replace the result of `op` by the operator built for a match; return whether the match was accepted."""
        try:
            value = self.build(match, rewriter.emit)
        except VerifyException:  # The operator rejects such operands.
            value = None
        if value is None or value.type != op.results[0].type:
            rewriter.discard()
            return False
        location = fuse_locations(covered.location for covered in reversed(match.ops))
        for new in rewriter.created:
            new.location = location
        rewriter.replace(op, (), [value])
        for covered in match.ops[1:]:
            if covered.parent is not None and not any(result.uses for result in covered.results):
                rewriter.erase(covered)
        return True
