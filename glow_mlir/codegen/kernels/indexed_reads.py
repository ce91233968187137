"""Reads at elements of operands of integers, each of which is looked at before it is used."""

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
from glow_mlir.codegen.kernels.generic_program import Program
from glow_mlir.codegen.kernels.index_checks import checked
from glow_mlir.codegen.kernels.lookup import look_up, lookup_steps
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
    """The element of an operand of integers at which an axis of another one is read."""

    operand: Operand
    steps: Shape
    """By how many elements each dimension of the index space moves it."""
    first: int
    """How far the first one is from the beginning of the operand."""
    size: Index
    """How long the axis is."""
    stride: int
    """By how many elements an index moves the operand that is read."""

    @staticmethod
    def of(read: IndexedRead, indices: Operand, strides: Shape, size: Index, stride: int) -> Element:
        """The element of a read of an operand that has those strides, of an axis of that size and stride."""
        steps = zip(read.affine.results, strides, strict=True)
        first = sum(e.value * step for e, step in steps if isinstance(e, AffineConstantExpr))
        return Element(indices, strides_over(read.affine, strides), first, size, stride)

    def read(self, b: Builder, offset: Index) -> Value:
        """The index, where the dimensions have moved it by an offset."""
        return read_index(b, self.operand, offset + self.first)


def elements_of(call: KernelCall, program: Program, operand: int, operands: Sequence[Operand]) -> list[Element]:
    """The elements at which axes of an operand are read, in the order of the axes."""
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
    The slices of an operand that indices select, where the result has its elements as they are.

    The last axes of the result, on which no index depends, are those of a slice.
    """

    program: Program
    operand: int
    """Which operand it is."""

    @staticmethod
    def of(program: Program) -> Slices:
        """Those of a program that moves elements."""
        return Slices(program, program.block.args.index(program.result))

    @property
    def order(self) -> Shape:
        """The dimensions, in the order of the axes of the result."""
        return tuple(dimensions_in(self.program.form.maps[-1]))

    @property
    def outer(self) -> int:
        """How many axes of the result are in front of those of a slice."""
        form = self.program.form
        chosen = dimensions_of_symbols(form.maps[self.operand], form.reads)
        return max((place + 1 for place, dimension in enumerate(self.order) if dimension in chosen), default=0)

    def suit(self, bodies: Sequence[Region]) -> bool:
        """Whether bodies are no slower than on vectors: functions of elements one by one are, and all of lookups."""
        if self.program.is_lookup:
            return not bodies
        is_single = all(size == 1 for size in self.program.result_view[self.outer :])
        return not (is_single and any(count_chains(body.block) or has_angles(body.block) for body in bodies))

    def steps(self, target: Target) -> int:
        """Into how many parts the work may be cut, about."""
        if self.program.is_lookup:
            return lookup_steps(
                self.program.op.inputs()[self.program.form.reads[0].operand], self.program.op.outputs()[0]
            )
        return box_steps(static(self.program.result_view), target)

    def emit(self, call: KernelCall, operands: Sequence[Operand], sink: Sink) -> None:
        """Copy slice after slice, or take each through the epilogue."""
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

        def take(place: list[Index]) -> None:
            found = [e.read(b, linear(place, step[:outer])) for e, step in zip(elements, moves, strict=True)]
            chosen = [checked(call, index, e.size) for index, e in zip(found, elements, strict=True)]
            out_of = linear([*place, *chosen], [*own[:outer], *(e.stride for e in elements)])
            starts = [linear(place, strides[:outer]) for strides in sink.strides]
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
    Move a slice, which begins at those places of the operand, of the result and of the extra operands of the epilogue.
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
