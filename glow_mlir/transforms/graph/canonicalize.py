"""`canonicalize`: simplify operators to their canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.transforms.canonicalize import CanonicalizePass as Canonicalize

from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_low.instructions import OWN
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, name_of
from glow_mlir.ir.rewriting import erase_dead, functions
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class CanonicalizePass(PatternPass):
    """
    Apply canonicalization patterns until nothing changes, and erase unused operators without effect.

    The patterns are those that operators declare (`HasCanonicalizationPatternsInterface`, `HasFolderInterface`). xDSL's
    pass of this name applies the same ones; it runs on modules without functions of ours.
    """

    name = "canonicalize"

    def walks(self) -> tuple[Walk, ...]:
        return (_walk(),)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not functions(op):
            Canonicalize().apply(ctx, op)
        # Uses by dead operators must not count.
        _erase_dead(op)
        super().apply(ctx, op)
        _erase_dead(op)


def _erase_dead(module: ModuleOp) -> None:
    for function in functions(module):
        erase_dead(function)


class FoldToOperand(Pattern):
    """Replace an operator by an operand that always equals its result."""

    @property
    def roots(self) -> Kinds:
        return (HasFolderInterface,)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(op, HasFolderInterface)
        folded = op.fold()
        if folded is not None:
            rewriter.replace(op, [], [value for value in folded if isinstance(value, SSAValue)])


class Canonicalization(Pattern):
    """A pattern that operators declare, under the name of its class."""

    name: str

    def __init__(self, pattern: RewritePattern, kinds: Kinds) -> None:
        self.name = name_of(type(pattern))
        self.__doc__ = pattern.__doc__
        self._pattern = pattern
        self._kinds = kinds

    @property
    def roots(self) -> Kinds:
        return self._kinds

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        self._pattern.match_and_rewrite(op, rewriter)


@cache
def _walk() -> Walk:
    """The walk, indexed by the root operators of patterns."""
    return Walk((FoldToOperand(), *canonicalizations()), recursive=True, repeated=True)


@cache
def canonicalizations() -> tuple[Canonicalization, ...]:
    """The patterns that the operators of our dialects declare."""
    kinds: dict[RewritePattern, list[type[Operation]]] = {}
    for kind, pattern in _canonicalizations():
        kinds.setdefault(pattern, []).append(kind)
    return tuple(Canonicalization(pattern, tuple(found)) for pattern, found in kinds.items())


def _canonicalizations() -> Iterator[tuple[type[Operation], RewritePattern]]:
    """Operators with each of their patterns; derived instructions have none."""
    for kind in (*operators(), *OWN):
        if issubclass(kind, HasCanonicalizationPatternsInterface):
            for pattern in kind.get_canonicalization_patterns():
                yield kind, pattern
