"""
Bodies: regions of scalar ops that are applied to each element of an index space, in the manner of linalg.generic.

A stack is such a body alone; an instruction has one as the epilogue of its result or the prologue of its first operand.
Each extra operand has an affine map from the index space, so that broadcasts are operands like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import AnyAttr, traits_def, var_operand_def
from xdsl.traits import IsTerminator, Pure

from glow_mlir.dialects.element_types import is_storable, signless
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.scalar_builder import is_scalar_op
from glow_mlir.dialects.shapes import element_of, require, sizes_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation


@op_definition
class YieldOp(LeanOperation):
    """The result elements of a body."""

    name = "glow_low.yield"

    values = var_operand_def(AnyAttr())

    traits = traits_def(IsTerminator(), Pure(), KnownAttributes())

    assembly_format = "$values attr-dict `:` type($values)"


@dataclass(frozen=True)
class Body:
    """
    A body with its extra operands, in addition to those of the instruction itself.

    `maps` has the map of each target, then of each source. The arguments of the block are the instruction's own
    elements, then those of the sources; it yields the instruction's own elements, then those for the targets.
    """

    block: Block
    maps: tuple[AffineMap, ...]
    targets: tuple[SSAValue, ...]
    sources: tuple[SSAValue, ...]


def yielded(block: Block) -> tuple[SSAValue, ...]:
    """The result elements of a body."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    return tuple(last.values)


def verify_targets(values: Sequence[SSAValue], maps: Sequence[AffineMap], space: Sizes) -> None:
    """
    Check that each written element belongs to a single point of the index space; maps are already verified.

    Raises `VerifyException`.
    """
    for value, affine in zip(values, maps, strict=True):
        used = {expression.position for expression in affine.results if isinstance(expression, AffineDimExpr)}
        left = [f"d{dimension}" for dimension, size in enumerate(space) if size != 1 and dimension not in used]
        require(not left, f"map {affine} of an @out writes elements once for each {', '.join(left)}")
        pairs = zip(affine.results, sizes_of(value), strict=True)
        whole = all(size == 1 or isinstance(expression, AffineDimExpr) for expression, size in pairs)
        require(whole, f"map {affine} of an @out leaves elements out")


def verify_body(block: Block, arguments: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """Check that a body takes elements of the types `arguments` and ends in a yield of elements of `results`."""
    expected = [signless(element) for element in arguments]
    require(list(block.arg_types) == expected, f"the body must take {', '.join(map(str, expected))}")
    for op in block.ops:
        _verify_scalar(op, block)
    last = block.last_op
    require(isinstance(last, YieldOp), "the body must end in glow_low.yield")
    assert last is not None
    wanted = [signless(element) for element in results]
    require([v.type for v in last.operands] == wanted, f"the body must yield {', '.join(map(str, wanted))}")


def _verify_scalar(op: Operation, block: Block) -> None:
    """Check that an op of a body computes one scalar from scalars of that body."""
    inside = all(value.owner is block or getattr(value.owner, "parent", None) is block for value in op.operands)
    require(inside, f"{op.name} in a body uses a value from outside")
    if isinstance(op, YieldOp):
        return
    require(is_scalar_op(op), f"a body does not hold {op.name}")
    for result in op.results:
        fits = is_storable(result.type) and signless(result.type) == result.type
        require(fits, f"{op.name} in a body computes {result.type}, which is no element")


def elements(values: Sequence[SSAValue]) -> list[Attribute]:
    """The element types of buffers."""
    return [element_of(value) for value in values]
