"""Kernels of data-parallel instructions: stacks, copies and splats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.access import lanes_for, load_as
from glow_mlir.codegen.builder.nests import Index, collapse, linear, nest_steps, numbers, vector_nest
from glow_mlir.codegen.builder.streaming import is_streamed, streamed_loop
from glow_mlir.codegen.builder.types import integer_of_width
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import MAX_PACKED, packs_to_bytes
from glow_mlir.codegen.copies import Box, box_steps, copy_box, fill_box, raw_constant
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.kernels.elements.short_lines import ShortLines
from glow_mlir.codegen.math.narrow import in_memory, loaded
from glow_mlir.codegen.quantized_rounding import stores_bytes
from glow_mlir.codegen.scalar_body import can_emit, count_chains, emit_scalar_body, has_angles, has_quotients, widest
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_low.body import yielded
from glow_mlir.dialects.glow_low.memory import CopyOp, FillOp
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.scalar_body import scalar_body
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.dialects.target import Target

REGISTERS_A_VECTOR = 4
"""
The registers that each vector of a function needs, if its operations form a dependency chain.

The values of a polynomial take two or three; its coefficients are loaded from memory once registers are short.
"""

REGISTERS_AN_ANGLE = 16
"""The registers that each vector of a trigonometric function needs: it is computed in f64, in two vectors."""


MAX_ACCEPTED = 1 << 10
"""The capacity of `_ACCEPTED`."""

_ACCEPTED: dict[object, bool] = {}
"""Kind, types and properties of an operator → whether its body can be emitted."""


@kernel("stack")
class StackKernel(Kernel[StackOp | Elementwise]):
    """One vectorized loop nest for a whole stack; intermediate vectors stay in registers."""

    name = "stack"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def accepts(self, op: StackOp | Elementwise) -> bool:
        if isinstance(op, StackOp):
            return all(can_emit(inner) for inner in op.block.ops if inner.results)
        types = (*op.operand_types, *op.result_types)
        key = type(op), types, tuple(op.properties.items())
        if key not in _ACCEPTED:
            if len(_ACCEPTED) >= MAX_ACCEPTED:
                _ACCEPTED.clear()
            block, _ = scalar_body(op)
            _ACCEPTED[key] = all(can_emit(inner) for inner in block.ops)
        return _ACCEPTED[key]

    def emit(self, call: KernelCall[StackOp | Elementwise]) -> None:
        op = call.op
        assert isinstance(op, StackOp)
        b = call.b
        operands = [*call.many("targets"), *call.many("sources")]
        sizes, strides = collapse(op.space(), op.steps())
        extents = call.extents(sizes)
        lanes, vectors = self._lanes(op, strides, call.target)
        targets, uniform = len(op.targets), _uniform(op, strides)

        def body(outer: list[Index], i: Index, width: int, alignment: int = 0) -> None:
            offsets = [linear([*outer, i], s) for s in strides]
            inputs = [
                load_as(b, operand, loaded(operand.element), offset, s[-1], width)
                for operand, offset, s in list(zip(operands, offsets, strides, strict=True))[targets:]
            ]
            computed(offsets, inputs, width, alignment)

        def computed(offsets: list[Index], inputs: list[Value], width: int, alignment: int = 0) -> None:
            scalars = {
                argument: load_as(b, operands[place], loaded(operands[place].element), 0, 0, 1)
                for place, argument in uniform.items()
            }
            results = emit_scalar_body(
                b, op.block, inputs, yielded(op.block), width, may_branch=True, uniform=scalars if width > 1 else {}
            )
            for operand, offset, value in zip(operands[:targets], offsets, results, strict=False):
                address = operand.pointer.at(offset, in_memory(operand.element))
                b.store(value, address, alignment or None, nontemporal=alignment > 0)

        def streamed(i: Index, width: int, alignment: int) -> None:
            body([], i, width, alignment)

        share = call.share("lines")
        if share.is_all and ShortLines.suit(extents, strides, targets, lanes, vectors, call.target):
            count, length = numbers(extents[-2:])
            lines = ShortLines(b, operands, strides, count, length, lanes * vectors)
            lines.emit(extents[:-2], lanes, targets, computed)
            return
        size = byte_width(operands[0].element)
        flat = lanes > 1 and targets == 1 and len(extents) == 1 and strides[0] == (1,)
        if flat and isinstance(extents[0], int) and is_streamed(call.target, size * extents[0]):
            streamed_loop(b, operands[0].pointer, size, share.of(extents[0]), lanes * vectors, streamed)
        else:
            vector_nest(b, extents, lanes * vectors, body, share, rest=lanes)

    def cuts(self, op: StackOp | Elementwise, target: Target) -> Mapping[str, int]:
        assert isinstance(op, StackOp)
        extents, strides = collapse(op.extents(), op.steps())
        lanes, vectors = self._lanes(op, strides, target)
        if lanes > 1 and not count_chains(op.block):
            # A number by which the body divides may become a parameter, which is divided by in more vectors at once.
            vectors = max(vectors, _packed_vectors(op, lanes, strides, target))
        return {"lines": nest_steps(extents, lanes * vectors)}

    def _lanes(self, op: StackOp, strides: Sequence[Shape], target: Target) -> tuple[int, int]:
        """Return the number of elements of a vector, and the number of vectors computed at once."""
        elements: list[Attribute] = [element_of(value) for value in op.operands]
        widest_type = integer_of_width(widest(op.block, elements))
        lanes, chains = lanes_for(target, widest_type, [s[-1] for s in strides]), count_chains(op.block)
        if lanes == 1:
            return lanes, 1
        if not chains and has_angles(op.block):
            return lanes, max(1, target.vector_registers // REGISTERS_AN_ANGLE)
        uniform, packed = set(_uniform(op, strides).values()), _packed_vectors(op, lanes, strides, target)
        if not chains and has_quotients(op.block, target, uniform):
            return lanes, max(packed if uniform else 1, kernel_costs(target).quotient_vectors)
        if not chains:
            return lanes, packed
        return lanes, min(
            kernel_costs(target).independent_vectors * min(chains, 2), target.vector_registers // REGISTERS_A_VECTOR
        )


def _packed_vectors(op: StackOp, lanes: int, strides: Sequence[Shape], target: Target) -> int:
    """Return the number of vectors whose results are packed to one vector of bytes; 1 if none are."""
    stores = stores_bytes(op.block, set(_uniform(op, strides).values()))
    return MAX_PACKED if stores and packs_to_bytes(target, MAX_PACKED * lanes) else 1


_ON_UNIFORM = (arith.DivfOp, arith.SIToFPOp, arith.UIToFPOp)
"""The operations of a body that take fewer instructions if an operand is the same in all lanes."""


def _uniform(op: StackOp, strides: Sequence[Shape]) -> Mapping[int, SSAValue]:
    """Return position → argument of the body, for operands that are one number by which the stack may divide."""
    targets = len(op.targets)
    return {
        place: argument
        for place, argument in enumerate(op.block.args, targets)
        if not any(strides[place]) and any(isinstance(use.operation, _ON_UNIFORM) for use in argument.uses)
    }


@kernel("copy")
class CopyKernel(Kernel[CopyOp]):
    """A copy between two buffers of the same shape, with any strides."""

    name = "copy"
    AXES = ("lines",)
    STRIDED_INNER = True
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[CopyOp]) -> None:
        target, source = call.one("target"), call.one("source")
        copy_box(call.b, target.extents, Box.all_of(target), Box.all_of(source), call.share("lines"))

    def cuts(self, op: CopyOp, target: Target) -> Mapping[str, int]:
        return {"lines": box_steps(shape_of(op.outputs()[0]), target)}


@kernel("fill")
class FillKernel(Kernel[FillOp | SplatOp]):
    """Stores of one value to one or more buffers."""

    name = "fill"
    AXES = ("lines",)
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[FillOp | SplatOp]) -> None:
        for target in (operand for group in call.operands.values() for operand in group):
            value = raw_constant(call.b, number(call.op.properties["value"]), target.element)
            fill_box(call.b, target.extents, Box.all_of(target), value, call.share("lines"))

    def cuts(self, op: FillOp | SplatOp, target: Target) -> Mapping[str, int]:
        return {"lines": max(box_steps(shape_of(value), target) for value in op.outputs())}
