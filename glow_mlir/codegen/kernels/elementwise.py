"""Kernels of data-parallel instructions: stacks, copies and splats."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernel import Kernel, KernelCall, Operand, kind_of
from glow_mlir.codegen.nests import Index, collapse, linear, nest, vector_loop
from glow_mlir.codegen.scalar_body import can_emit, emit_scalar_body, widest
from glow_mlir.codegen.types import vector
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.element_types import byte_width, signless
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.storage import SplatOp
from glow_mlir.dialects.glow_low.memory import CopyOp
from glow_mlir.dialects.glow_low.stack import StackOp, YieldOp
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.scalar_body import scalar_body
from glow_mlir.dialects.shapes import Shape
from glow_mlir.registry import kernel


def load(b: Builder, operand: Operand, offset: Index, stride: int, lanes: int) -> Value:
    """`lanes` elements from an element offset on: a vector load, or one element for all lanes where stride is 0."""
    element = signless(operand.element)
    address = operand.pointer.at(offset, element)
    if stride == 0:
        return b.splat(address.load(element), lanes) if lanes > 1 else address.load(element)
    return address.load(vector(element, lanes))


def dimension_strides(affine: AffineMap, operand: Operand) -> Shape:
    """For each dimension of the index space, by how many elements it moves the operand."""
    steps = [0] * affine.num_dims
    for expression, stride in zip(affine.results, operand.strides, strict=True):
        if isinstance(expression, AffineDimExpr):
            steps[expression.position] += stride
    return tuple(steps)


def lanes_for(bits: int, call: KernelCall, inner: list[int]) -> int:
    """Lanes of a loop whose operands move by `inner` in its innermost dimension: 1 where one of them jumps."""
    if any(step not in (0, 1) for step in inner):
        return 1
    return max(1, call.target.vector_bits // max(bits, 8))


@kernel("stack")
class StackKernel(Kernel):
    """One vectorised loop nest for a whole stack; the vectors of a chain stay in registers."""

    name = "stack"

    def accepts(self, op: Operation) -> bool:
        if isinstance(op, StackOp):
            return all(can_emit(inner) for inner in op.block.ops if inner.results)
        if not isinstance(op, Elementwise):
            return False
        block, _ = scalar_body(op)
        return all(can_emit(inner) for inner in block.ops)

    def emit(self, call: KernelCall) -> None:
        op = call.op
        assert isinstance(op, StackOp)
        b = call.b
        operands = [*call.many("targets"), *call.many("sources")]
        steps = [dimension_strides(m, operand) for m, operand in zip(op.affine_maps(), operands, strict=True)]
        extents, strides = collapse(op.extents(), steps)
        elements: list[Attribute] = [operand.element for operand in operands]
        lanes = lanes_for(widest(op.block, elements), call, [s[-1] for s in strides])
        targets = len(op.targets)
        last = op.block.last_op
        assert isinstance(last, YieldOp)

        def body(outer: list[Index], i: Index, width: int) -> None:
            offsets = [linear([*outer, i], s) for s in strides]
            inputs = [
                load(b, operand, offset, s[-1], width)
                for operand, offset, s in list(zip(operands, offsets, strides, strict=True))[targets:]
            ]
            results = emit_scalar_body(b, op.block, inputs, list(last.values), width)
            for operand, offset, value in zip(operands[:targets], offsets, results, strict=False):
                operand.pointer.at(offset, signless(operand.element)).store(value)

        nest(b, extents[:-1], lambda outer: vector_loop(b, extents[-1], lanes, lambda i, w: body(outer, i, w)))


@kernel("copy")
class CopyKernel(Kernel):
    """A strided copy, vectorised where both sides are dense in the last dimension."""

    name = "copy"

    def accepts(self, op: Operation) -> bool:
        return isinstance(op, CopyOp)

    def emit(self, call: KernelCall) -> None:
        emit_copy(call, call.one("target"), call.one("source"))


def emit_copy(call: KernelCall, target: Operand, source: Operand) -> None:
    """Copy `source` to `target`, of one shape, with any strides."""
    copy_strided(call, target, source, target.shape, target.strides, source.strides)


def copy_strided(
    call: KernelCall,
    target: Operand,
    source: Operand,
    shape: Shape,
    target_strides: Shape,
    source_strides: Shape,
    target_offset: Index = 0,
    source_offset: Index = 0,
) -> None:
    """Copy an index space of `shape` between two operands with those strides and element offsets."""
    b = call.b
    element = signless(target.element)
    extents, (into, out_of) = collapse(shape, [target_strides, source_strides])
    lanes = lanes_for(8 * byte_width(element), call, [into[-1], out_of[-1]]) if into[-1] == 1 else 1

    def body(outer: list[Index], i: Index, width: int) -> None:
        value = load(b, source, linear([*outer, i], out_of) + source_offset, out_of[-1], width)
        target.pointer.at(linear([*outer, i], into) + target_offset, element).store(value)

    nest(b, extents[:-1], lambda outer: vector_loop(b, extents[-1], lanes, lambda i, w: body(outer, i, w)))


@kernel("fill")
class FillKernel(Kernel):
    """Stores of one value."""

    name = "fill"

    def accepts(self, op: Operation) -> bool:
        return kind_of(op) is SplatOp

    def emit(self, call: KernelCall) -> None:
        fill(call, call.result, number(call.op.properties["value"]))


def fill(call: KernelCall, target: Operand, value: float) -> None:
    """Store `value` to every element of `target`."""
    b = call.b
    element = signless(target.element)
    extents, (strides,) = collapse(target.shape, [target.strides])
    lanes = lanes_for(8 * byte_width(element), call, [strides[-1]]) if strides[-1] == 1 else 1

    def body(outer: list[Index], i: Index, width: int) -> None:
        constant = b.constant(value, vector(element, width))
        target.pointer.at(linear([*outer, i], strides), element).store(constant)

    nest(b, extents[:-1], lambda outer: vector_loop(b, extents[-1], lanes, lambda i, w: body(outer, i, w)))
