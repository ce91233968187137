"""Epilogue operands: strides of an operand in another index space, and views with these strides."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from glow_mlir.analysis.accesses import Accesses
from glow_mlir.dialects.glow_low.loop import moves_of
from glow_mlir.dialects.glow_low.memory import ViewOp, buffer_type, offset_of, root_of, strides_of
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.rewriting.buffers import hoist_declaration
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.operations import cloned_operation


def reshaped_strides(extents: Sizes, steps: Shape, sizes: Sizes) -> Shape | None:
    """
    Convert the strides `steps` of an operand over the index space `extents` to strides over the index space `sizes`.

    Both spaces have the same elements in the same order; axes of size 1 get stride 0. `None` if the stride along an
    axis of `sizes` would not be uniform, or if there are no elements. A size known only at run time must be the size of
    one axis in both spaces.
    """
    if 0 in extents:
        return None
    pending = [(size, step) for size, step in zip(extents, steps, strict=True) if size != 1]
    result: list[int] = []
    for size in reversed(sizes):
        step = _step_along(size, pending)
        if step is None:
            return None
        result.append(step)
    return None if pending else tuple(reversed(result))


def _step_along(size: Size, pending: list[tuple[Size, int]]) -> int | None:
    """The stride along an axis of this size, composed of the last entries of `pending`, which it removes."""
    if not isinstance(size, int):
        return pending.pop()[1] if pending and pending[-1][0] == size else None
    step, covered = 0, 1
    while covered < size:
        inner, inner_step = pending.pop() if pending else (None, 0)
        if not isinstance(inner, int):
            return None
        if covered == 1:
            step = inner_step
        elif inner_step != step * covered:
            return None
        taken = min(inner, size // covered)
        if size % (covered * taken) or inner % taken:
            return None
        if taken != inner:
            pending.append((inner // taken, inner_step * taken))
        covered *= taken
    return step


def steps_over(stack: StackOp, operand: SSAValue, sizes: Sizes) -> Shape | None:
    """The strides of an operand of a stack over the index space `sizes`; `None` if they are not uniform."""
    position = next(index for index, value in enumerate(stack.operands) if value is operand)
    return reshaped_strides(stack.space(), stack.steps()[position], sizes)


def has_plain_operands(stack: StackOp) -> bool:
    """Whether each operand of a stack has one map, even if it occurs twice, and none is a moving window."""
    once = len(set(zip(stack.operands, stack.maps.data, strict=True))) == len(set(stack.operands))
    return once and not any(map(moves_of, stack.operands))


def own_strides(value: SSAValue) -> Shape:
    """The strides of a buffer, 0 for axes of size 1."""
    return tuple(0 if size == 1 else step for size, step in zip(sizes_of(value), strides_of(value), strict=True))


def extra(
    value: SSAValue, space: Sizes, steps: Shape, anchor: Operation, accesses: Accesses
) -> tuple[SSAValue, AffineMap]:
    """
    The memory of `value` as an operand with strides `steps` over the index space `space`, and its map.

    Inserts a view in front of `anchor` where the type differs, and hoists the declaration of the buffer there if it
    comes later.
    """
    sizes = tuple(size if step else 1 for size, step in zip(space, steps, strict=True))
    strides = list(steps)
    for axis in range(len(space) - 1, -1, -1):
        if sizes[axis] == 1:
            strides[axis] = 1 if axis == len(space) - 1 else strides[axis + 1] * largest(sizes[axis + 1])
    root = root_of(value)
    type_ = buffer_type(sizes, element_of(value), tuple(strides), offset_of(value))
    block = anchor.parent_block()
    assert block is not None
    hoist_declaration(block, accesses, root, anchor)
    results: list[AffineExpr] = [
        AffineDimExpr(axis) if step or size == 1 else AffineConstantExpr(0)
        for axis, (size, step) in enumerate(zip(space, steps, strict=True))
    ]
    affine = AffineMap(len(space), 0, tuple(results))
    if type_ == root.type:
        return root, affine
    view = ViewOp.of(root, type_, anchor.location)
    view.result.name_hint = value.name_hint
    block.insert_op_before(view, anchor)
    return view.result, affine


def body_with_first(stack: StackOp, value: SSAValue) -> Block:
    """A copy of the body of a stack whose first argument is the element of the source `value`."""
    sources = list(stack.sources)
    order = [sources.index(value), *(index for index, source in enumerate(sources) if source is not value)]
    body = stack.block
    block = Block(arg_types=[body.args[index].type for index in order])
    values: dict[SSAValue, SSAValue] = {
        body.args[index]: argument for index, argument in zip(order, block.args, strict=True)
    }
    for op in body.ops:
        block.add_op(cloned_operation(op, values))
    return block
