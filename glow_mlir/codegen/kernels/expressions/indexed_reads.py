"""Reads at indices that are elements of integer operands; each index is checked before it is used."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region
from xdsl.ir.affine import AffineConstantExpr, AffineSymExpr

from glow_mlir.codegen.access import lanes_for, load_as, read_index
from glow_mlir.codegen.bodies import Sink
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Extents, Index, collapse, linear, nest, vector_nest
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box, box_steps, copy_box
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.kernels.expressions.generic_program import Program
from glow_mlir.codegen.kernels.expressions.lookup import look_up, lookup_steps
from glow_mlir.codegen.math.narrow import loaded
from glow_mlir.codegen.scalar_body import count_chains, has_angles
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.affine_maps import dimensions_in, strides_over
from glow_mlir.dialects.generic_form import IndexedRead, dimensions_of_symbols
from glow_mlir.dialects.shapes import Shape, split_strides
from glow_mlir.dialects.sizes import static
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Element:
    """An element of an integer operand that is the index of an axis of another operand."""

    operand: Operand
    steps: Shape
    """The stride of each dimension of the index space in the integer operand."""
    first: int
    """The offset of the first index in the integer operand."""
    size: Index
    """The size of the axis."""
    stride: int
    """The stride of the axis in the operand that is read."""

    @staticmethod
    def of(read: IndexedRead, indices: Operand, strides: Shape, size: Index, stride: int) -> Element:
        """Return the element for a read; `strides` are those of `indices`, `size` and `stride` those of the axis."""
        steps = zip(read.affine.results, strides, strict=True)
        first = sum(e.value * step for e, step in steps if isinstance(e, AffineConstantExpr))
        return Element(indices, strides_over(read.affine, strides), first, size, stride)

    def read(self, b: Builder, offset: Index) -> Value:
        """Load the index at an offset of the dimensions."""
        return read_index(b, self.operand, offset + self.first)


def elements_of(call: KernelCall, program: Program, operand: int, operands: Sequence[Operand]) -> list[Element]:
    """Return the elements that are indices of axes of an operand, in the order of the axes."""
    views, reads = program.op.views(), program.form.reads
    if not reads:
        return []
    strides = [split_strides(each.sizes, each.strides, view) for each, view in zip(operands, views, strict=True)]
    axes = zip(program.form.maps[operand].results, call.extents(views[operand]), strides[operand], strict=True)
    return [
        Element.of(read, operands[read.operand], strides[read.operand], size, stride)
        for e, size, stride in axes
        if isinstance(e, AffineSymExpr) and (read := reads[e.position])
    ]


@dataclass(frozen=True)
class Slices:
    """
    The slices of an operand that indices select, for programs that only move elements.

    The axes of a slice are the last axes of the result, on which no index depends.
    """

    program: Program
    operand: int
    """The position of the operand."""

    @staticmethod
    def of(program: Program) -> Slices:
        """Return the slices of a program that moves elements."""
        return Slices(program, program.block.args.index(program.result))

    @property
    def order(self) -> Shape:
        """The dimensions, in the order of the axes of the result."""
        return tuple(dimensions_in(self.program.form.maps[-1]))

    @property
    def outer(self) -> int:
        """The number of axes of the result before those of a slice."""
        form = self.program.form
        chosen = dimensions_of_symbols(form.maps[self.operand], form.reads)
        return max((axis + 1 for axis, dimension in enumerate(self.order) if dimension in chosen), default=0)

    def suit(self, bodies: Sequence[Region]) -> bool:
        """Whether bodies are as fast on slices as on vectors: not functions of single elements, and none of lookups."""
        if self.program.is_lookup:
            return not bodies
        is_single = all(size == 1 for size in self.program.result_view[self.outer :])
        return not (is_single and any(count_chains(body.block) or has_angles(body.block) for body in bodies))

    def steps(self, target: Target) -> int:
        """Return into about how many tasks the work can be divided."""
        if self.program.is_lookup:
            return lookup_steps(
                self.program.op.inputs()[self.program.form.reads[0].operand], self.program.op.outputs()[0]
            )
        return box_steps(static(self.program.result_view), target)

    def emit(self, call: KernelCall, operands: Sequence[Operand], sink: Sink) -> None:
        """Copy each slice, or pass it through the epilogue."""
        if self.program.is_lookup:
            look_up(call, operands[self.program.form.reads[0].operand], operands[self.operand], sink.operand)
            return
        b, source, order, outer = call.b, operands[self.operand], self.order, self.outer
        elements = elements_of(call, self.program, self.operand, operands)
        steps = strides_over(self.program.form.maps[self.operand], source.strides)
        own, *moves = (
            tuple(every[dimension] for dimension in order) for every in (steps, *(e.steps for e in elements))
        )
        space = call.extents(self.program.space)
        extents = [space[dimension] for dimension in order]

        def take(indices: list[Index]) -> None:
            found = [e.read(b, linear(indices, step[:outer])) for e, step in zip(elements, moves, strict=True)]
            chosen = [checked(call, index, e.size) for index, e in zip(found, elements, strict=True)]
            out_of = linear([*indices, *chosen], [*own[:outer], *(e.stride for e in elements)])
            starts = [linear(indices, strides[:outer]) for strides in sink.strides]
            inner = [own[outer:], *(strides[outer:] for strides in sink.strides)]
            _take(call, sink, source, extents[outer:], inner, [out_of, *starts])

        nest(b, extents[:outer], take, call.share("lines"))


def _take(
    call: KernelCall,
    sink: Sink,
    source: Operand,
    extents: Extents,
    strides: Sequence[Shape],
    starts: Sequence[Index],
) -> None:
    """
    Move a slice; `starts` are its offsets in the operand, in the result and in the extra operands of the epilogue.
    """
    if sink.epilogue is None:
        out_of, into = starts
        copy_box(call.b, extents, Box(sink.operand, strides[1], into), Box(source, strides[0], out_of))
        return
    extents, moves = collapse(extents, strides)
    element, steps = loaded(source.element), [move[-1] for move in moves]

    def store(rest: list[Index], i: Index, lanes: int) -> None:
        out_of, *into = (linear([*rest, i], move) + start for move, start in zip(moves, starts, strict=True))
        sink.store(call.b, into, steps[1:], load_as(call.b, source, element, out_of, steps[0], lanes))

    vector_nest(call.b, extents, lanes_for(call.target, element, steps), store)
