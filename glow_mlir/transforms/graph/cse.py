"""`cse`: eliminate common subexpressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove, IsTerminator, MemoryEffectKind, is_side_effect_free, only_has_effect
from xdsl.transforms.common_subexpression_elimination import has_other_side_effecting_op_in_between

from glow_mlir.dialects.glow_high.storage import StorageOp
from glow_mlir.ir.rewriting import is_dead, is_pure
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.identity import is_kind
from glow_mlir.xdsl_patches.operations import operands_of


@dataclass(frozen=True)
class CsePass(ModulePass):
    """
    Replace an operation by an equal one that dominates it, and erase unused operations.

    Does the work of xDSL's pass of this name in a fraction of its time per operation.
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        elimination = _Elimination()
        elimination.visit_regions(op)
        elimination.erase()


Key = tuple[object, ...]
Known = dict[Key, list[Operation]]
"""Key of equal operations, regions excepted → the operations seen so far, with different regions."""


@dataclass
class _Elimination:
    """One walk over a module. Equal operations agree in name, operands, attributes, result types and regions."""

    known: Known = field(default_factory=dict[Key, list[Operation]])
    """Operations seen in this region and the enclosing ones."""
    candidates: set[Operation] = field(default_factory=set[Operation])
    """All operations seen that may equal another."""
    replaced: list[Operation] = field(default_factory=list[Operation])
    """Operations without uses, to be erased."""
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    """Identity of an attribute → a number shared by equal attributes: hashing attributes is slow."""
    values: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    """Attribute → its number."""

    def erase(self) -> None:
        """Erase the operations without uses."""
        for op in self.replaced:
            if op.parent is not None:
                Rewriter.erase_op(op)

    def visit_regions(self, op: Operation) -> None:
        """Visit the operations inside `op`; regions of several blocks are skipped."""
        around = self.known
        if op.has_trait(IsolatedFromAbove, value_if_unregistered=True):
            self.known = {}
        for region in op.regions:
            if len(region.blocks) == 1:
                outer, self.known = self.known, {key: list(ops) for key, ops in self.known.items()}
                self._visit_block(region.block)
                self.known = outer
        self.known = around

    def _visit_block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op.regions:
                self.visit_regions(op)
            if not is_kind(type(op), StorageOp):
                self._visit(op)
            op = following

    def _visit(self, op: Operation) -> None:
        """Replace an operation by an equal one seen before, if that is safe."""
        if _is_terminator(type(op)):
            return
        if is_dead(op):
            self.replaced.append(op)
            return
        if any(len(region.blocks) > 1 for region in op.regions):
            return
        is_free = is_pure(type(op)) or is_side_effect_free(op)
        if not is_free and not only_has_effect(op, MemoryEffectKind.READ):
            return
        alike = self.known.setdefault(self._key(op), [])
        position = next((position for position, other in enumerate(alike) if _same_regions(op, other)), len(alike))
        self.candidates.add(op)
        if position < len(alike) and (is_free or _reads_the_same(alike[position], op)):
            self._replace(op, alike[position])
        else:
            alike[position : position + 1] = [op]

    def _replace(self, op: Operation, existing: Operation) -> None:
        """Redirect uses of the results to an equal operation."""
        for old, new in zip(op.results, existing.results, strict=True):
            if not any(use.operation in self.candidates for use in old.uses):
                old.replace_all_uses_with(new)
        if all(result.first_use is None for result in op.results):
            self.replaced.append(op)

    def _key(self, op: Operation) -> Key:
        """The key on which equal operations agree."""
        kind = op.op_name if isinstance(op, UnregisteredOp) else type(op)
        properties, attributes = self._numbered(op.properties), self._numbered(op.attributes)
        return kind, operands_of(op), properties, attributes, *[self._number(result.type) for result in op.results]

    def _numbered(self, attributes: dict[str, Attribute]) -> Sequence[tuple[str, int]] | frozenset[tuple[str, int]]:
        """Number attributes; their order is ignored."""
        if len(attributes) < 2:
            return tuple((name, self._number(value)) for name, value in attributes.items())
        return frozenset([(name, self._number(value)) for name, value in attributes.items()])

    def _number(self, value: Attribute) -> int:
        found = self.numbers.get(id(value))
        if found is None:
            found = self.numbers[id(value)] = self.values.setdefault(value, len(self.values))
        return found


@cache
def _is_terminator(kind: type[Operation]) -> bool:
    return kind.has_trait(IsTerminator, value_if_unregistered=False)


def _same_regions(op: Operation, other: Operation) -> bool:
    """Whether operations that agree otherwise have equal regions, too."""
    pairs = zip(op.regions, other.regions, strict=True)
    return all(own.is_structurally_equivalent(others) for own, others in pairs)


def _reads_the_same(existing: Operation, op: Operation) -> bool:
    """Whether no write can have happened since the equal operation."""
    return op.parent is existing.parent and not has_other_side_effecting_op_in_between(existing, op)
