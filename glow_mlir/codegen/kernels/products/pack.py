"""
Packing in machine code: the instruction that writes an operand in the layout of a kernel.

A layout that only moves elements is packed by copies between boxes; layouts with dot groups or a transform have their
own code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.partition import ALL, Partition
from glow_mlir.codegen.copies import Box, box_steps, fill_box, move_box, raw_constant
from glow_mlir.codegen.kernels.products.dot_products import dot_group_product
from glow_mlir.codegen.kernels.products.pack_dot_groups import Matrix, emit_pack_dot_groups
from glow_mlir.codegen.kernels.products.pack_winograd import emit_pack_winograd
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import TABLES, kernel
from glow_mlir.constants.layouts import Interleave, WinogradTransform
from glow_mlir.constants.tiled_layout import COLUMNS, DEPTH, TiledLayout
from glow_mlir.dialects.glow_low.memory import is_dense
from glow_mlir.dialects.glow_low.packing import PackOp, form_of
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.ir.registry import packed_forms_of


@kernel("pack")
class PackKernel(Kernel[PackOp]):
    """Packing of an operand in the layout of another kernel."""

    name = "pack"
    AXES = ("steps",)

    def accepts(self, op: PackOp) -> bool:
        if not is_dense(op.target):
            return False
        layout = _layout_of(op)
        computes = layout is not None and not isinstance(layout.transform, WinogradTransform | None)
        return layout is not None and not computes and shape_of(op.target) == layout.shape

    def cuts(self, op: PackOp, target: Target) -> Mapping[str, int]:
        return {"steps": packing_steps(_known_layout(op), target)}

    def emit(self, call: KernelCall[PackOp]) -> None:
        emit_packing(
            call.b, _known_layout(call.op), call.one("target"), Box.all_of(call.one("source")), call.share("steps")
        )


def _layout_of(op: PackOp) -> TiledLayout | None:
    """Return the layout that an instruction writes; `None` if it is unknown."""
    form, shape, numbers = form_of(op.layout)
    makers = packed_forms_of(TABLES).all()
    try:
        layout = makers[form](shape, numbers)
    except (KeyError, ValueError):
        return None
    return layout if isinstance(layout, TiledLayout) else None


def _known_layout(op: PackOp) -> TiledLayout:
    """Return the layout of an instruction that the kernel accepts."""
    layout = _layout_of(op)
    assert layout is not None
    return layout


def packing_steps(layout: TiledLayout, target: Target) -> int:
    """Return into about how many tasks packing can be divided."""
    if layout.transform is None and DEPTH not in layout.cuts:
        return box_steps(layout.shape, target)
    return -(-layout.sizes[COLUMNS] // layout.cuts[COLUMNS].unit)


def emit_packing(b: Builder, layout: TiledLayout, packed: Operand, plain: Box, share: Partition = ALL) -> None:
    """
    Emit the packing of an operand, given as a box with the axes of `layout.plain`, or of a share of it. Narrow floats
    are widened if `packed` has wide ones.

    Shares divide the lines if elements are only moved, else the panels. With dot groups or a transform, columns after
    the last one are unspecified.
    """
    if isinstance(layout.transform, WinogradTransform):
        emit_pack_winograd(b, packed, plain, layout.transform.tile, share)
    elif DEPTH in layout.cuts:
        _emit_dot_groups(b, layout, packed, plain, share)
    else:
        for move in layout.moves(plain.strides):
            target = Box(packed, move.target.strides, move.target.offset)
            if move.source is None:
                fill_box(b, move.shape, target, raw_constant(b, 0.0, packed.element), share)
            else:
                source = Box(plain.operand, move.source.strides, plain.offset + move.source.offset)
                move_box(b, move.shape, target, source, share)


def _emit_dot_groups(b: Builder, layout: TiledLayout, packed: Operand, plain: Box, share: Partition) -> None:
    """Emit the packing of elements in dot groups along the depth."""
    operand = plain.operand
    dot = dot_group_product(operand.element, Interleave.of(layout.numbers), b.target)
    tile, element, strides = dot.tile(b.target), dot.memory, layout.strides(plain.strides)
    rows = [word.strip("/") for word in layout.rows]
    axes = [(layout.sizes[name], strides[name]) for name in rows]
    groups = layout.sizes.get("g", 1)
    pitch = math.prod(packed.shape) // groups
    with b.loop(0, groups) as group:
        source = operand.pointer.at(group * strides.get("g", 0) + plain.offset, element)
        matrix = Matrix(source, layout.sizes[COLUMNS], strides[COLUMNS], axes)
        emit_pack_dot_groups(b, packed.pointer.at(group * pitch, element), matrix, dot, tile, share)
