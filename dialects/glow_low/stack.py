"""The stack: one loop over an index space that applies a body of scalar ops (paper §5.2, as linalg.generic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, LocationAttr, StringAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import base, opt_prop_def, prop_def, region_def, var_operand_def
from xdsl.parser import Parser

from glow_mlir.dialects.affine_maps import affine_maps, maps_attribute, strides_over, verify_maps
from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.base import to_segments, with_operand_accessors
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.glow_low.body import elements, verify_body, verify_targets
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import Shape, element_of, require, sizes_of
from glow_mlir.dialects.sizes import static
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

PARALLEL = "parallel"


@cache
def _parallel(rank: int) -> ArrayAttr[StringAttr]:
    """The kinds of so many dimensions."""
    return ArrayAttr([StringAttr(PARALLEL)] * rank)


@with_operand_accessors
@op_definition
class StackOp(Instruction):
    """
    One pass over an index space: load an element of each @in operand, apply the body, store to each @out operand.

    `maps` has an affine map from the index space for each operand, @out first; a map yields for each axis of the
    operand a dimension of the index space or 0, so that broadcasts and transposed reads are inputs like any other.
    `iterators` has the kind of each dimension, `parallel`. Each element of @out is written once, after those of @in
    are read.

    ```mlir
    glow_low.stack @out %y, @in %x, @in %scale {maps = [...], iterators = ["parallel", "parallel"]} {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.mulf %a, %b : f32
      glow_low.yield %0 : f32
    }
    ```
    """

    name = "glow_low.stack"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"targets": Qualifier.OUT, "sources": Qualifier.IN}

    targets = var_operand_def(BUFFER)
    sources = var_operand_def(BUFFER)
    maps = prop_def(base(ArrayAttr))
    iterators = prop_def(base(ArrayAttr))
    kernel = opt_prop_def(StringAttr)
    partitions = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")

    @classmethod
    def over(
        cls,
        targets: Sequence[SSAValue],
        sources: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        rank: int,
        location: LocationAttr | None = None,
        body: Region | None = None,
    ) -> StackOp:
        """A stack over a parallel index space of that rank; by default with an empty body that has the arguments."""
        if body is None:
            body = Region(Block(arg_types=[signless(element_of(source)) for source in sources]))
        return cls.create(
            operands=[*targets, *sources],
            properties={
                "maps": maps_attribute(maps),
                "iterators": _parallel(rank),
                "operandSegmentSizes": to_segments([len(targets), len(sources)]),
            },
            regions=[body],
            location=location,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        op = super().parse(parser)
        if isinstance(op.properties.get("iterators"), DenseArrayBase):  # An empty list could be one of anything.
            op.properties["iterators"] = ArrayAttr(())
        return op

    @property
    def block(self) -> Block:
        """The body."""
        return self.body.block

    def affine_maps(self) -> tuple[AffineMap, ...]:
        """The map of each operand, @out first."""
        return affine_maps(self.maps)

    def steps(self) -> list[Shape]:
        """For each operand, @out first, its stride in elements along each dimension of the index space."""
        operands = zip(self.operands, self.affine_maps(), strict=True)
        return [strides_over(affine, strides_of(value)) for value, affine in operands]

    def extents(self) -> Shape:
        """The size of each dimension of the index space; raises `RunTimeSizeError` where one is no number."""
        return static(self.space())

    def space(self) -> Sizes:
        """The sizes of the index space."""
        sizes: dict[int, Size] = {}
        for value, affine in zip(self.operands, self.affine_maps(), strict=True):
            for axis, expression in enumerate(affine.results):
                if isinstance(expression, AffineDimExpr):
                    sizes.setdefault(expression.position, sizes_of(value)[axis])
        return tuple(sizes[dimension] for dimension in range(len(self.iterators)))

    def verify_(self) -> None:
        for kind in self.iterators:
            is_parallel = isinstance(kind, StringAttr) and kind.data == PARALLEL
            require(is_parallel, f"an iterator of a stack is '{PARALLEL}', not {kind}")
        rank = len(self.iterators)
        sizes = verify_maps(self.operands, self.affine_maps(), rank)
        require(sorted(sizes) == list(range(rank)), "some dimension of the index space has no operand")
        verify_targets(self.targets, self.affine_maps()[: len(self.targets)], self.space())
        verify_body(self.block, elements(self.sources), elements(self.targets))
