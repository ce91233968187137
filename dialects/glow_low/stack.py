"""The stack: one loop over an index space that applies a body of scalar ops (paper §5.2, as linalg.generic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    base,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, Pure

from glow_mlir.dialects.element_types import signless
from glow_mlir.dialects.glow_high.base import to_segments
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.shapes import Shape, element_of, require, shape_of

PARALLEL = "parallel"


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The result elements of a body, one for each @out operand."""

    name = "glow_low.yield"

    values = var_operand_def(AnyAttr())

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "$values attr-dict `:` type($values)"


@irdl_op_definition
class StackOp(Instruction):
    """
    One pass over an index space: load an element of each @in operand, apply the body, store to each @out operand.

    `maps` has an affine map from the index space for each operand, @out first; a map yields for each axis of the
    operand a dimension of the index space or 0, so that broadcasts and transposed reads are inputs like any other.
    `iterators` has the kind of each dimension. Each element of @out is written once, after those of @in are read.

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
    body = region_def("single_block")

    @classmethod
    def over(
        cls,
        targets: Sequence[SSAValue],
        sources: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        rank: int,
        location: LocationAttr | None = None,
    ) -> StackOp:
        """A stack with an empty body over a parallel index space of that rank; the body has its arguments."""
        block = Block(arg_types=[signless(element_of(source)) for source in sources])
        return cls.create(
            operands=[*targets, *sources],
            properties={
                "maps": ArrayAttr([AffineMapAttr(m) for m in maps]),
                "iterators": ArrayAttr([StringAttr(PARALLEL)] * rank),
                "operandSegmentSizes": to_segments([len(targets), len(sources)]),
            },
            regions=[Region(block)],
            location=location,
        )

    @property
    def block(self) -> Block:
        """The body."""
        return self.body.block

    def affine_maps(self) -> list[AffineMap]:
        """The map of each operand, @out first."""
        return [m.data for m in self.maps.data if isinstance(m, AffineMapAttr)]

    def extents(self) -> Shape:
        """The size of each dimension of the index space."""
        sizes: dict[int, int] = {}
        for value, affine in zip(self.operands, self.affine_maps(), strict=True):
            for axis, expression in enumerate(affine.results):
                if isinstance(expression, AffineDimExpr):
                    sizes.setdefault(expression.position, shape_of(value)[axis])
        return tuple(sizes[dimension] for dimension in range(len(self.iterators)))

    def verify_(self) -> None:
        maps = self.affine_maps()
        require(len(maps) == len(self.operands), f"{len(self.operands)} operands need as many maps, got {len(maps)}")
        sizes: dict[int, int] = {}
        for value, affine in zip(self.operands, maps, strict=True):
            shape = shape_of(value)
            require(affine.num_dims == len(self.iterators), f"map {affine} has not {len(self.iterators)} dimensions")
            require(len(affine.results) == len(shape), f"map {affine} does not fit shape {shape}")
            for expression, size in zip(affine.results, shape, strict=True):
                if isinstance(expression, AffineDimExpr):
                    known = sizes.setdefault(expression.position, size)
                    require(known == size, f"dimension d{expression.position} is {known} and {size} long")
                else:
                    is_zero = isinstance(expression, AffineConstantExpr) and expression.value == 0
                    require(is_zero, f"map {affine} yields {expression}, neither a dimension nor 0")
        require(sorted(sizes) == list(range(len(self.iterators))), "some dimension of the index space has no operand")
        self._verify_body()

    def _verify_body(self) -> None:
        expected: list[Attribute] = [signless(element_of(source)) for source in self.sources]
        require(list(self.block.arg_types) == expected, f"the body must take {', '.join(map(str, expected))}")
        last = self.block.last_op
        require(isinstance(last, YieldOp), "the body must end in glow_low.yield")
        assert last is not None
        results: list[Attribute] = [signless(element_of(target)) for target in self.targets]
        require([v.type for v in last.operands] == results, f"the body must yield {', '.join(map(str, results))}")


def broadcast_map(shape: Shape, space: Shape) -> AffineMap:
    """The map by which an operand of `shape` broadcasts over the index space `space`."""
    first = len(space) - len(shape)
    results = [
        AffineConstantExpr(0) if size == 1 and space[first + axis] != 1 else AffineDimExpr(first + axis)
        for axis, size in enumerate(shape)
    ]
    return AffineMap(len(space), 0, tuple(results))
