"""Operands that a kernel reads in a layout: packed before the run, or into scratch in each call."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.kernels.products.pack import emit_packing, packing_steps
from glow_mlir.codegen.selection.kernel import Buffer, KernelCall, Operand
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.dialects.target import Target

PACK = "pack"
"""The axis along which packing is cut."""


def packing_scratch(op: Operation, forms: Mapping[str, PackedForm]) -> list[Buffer]:
    """Return the scratch buffers to pack the operands of an instruction in each call: none if they are packed."""
    if "packing" in op.properties:
        return []
    return [(form.layout.shape, form.element) for form in forms.values()]


def packing_cuts(op: Operation, forms: Mapping[str, PackedForm], target: Target) -> dict[str, int]:
    """Return the number of steps to pack the operands of an instruction in each call: none if they are packed."""
    if "packing" in op.properties:
        return {}
    return {PACK: max(packing_steps(_tiled(form), target) for form in forms.values())}


def packed_operand(call: KernelCall, name: str, form: PackedForm, scratch: Operand) -> Value:
    """Return an operand in a layout; if it is not packed, pack a share of it, along `PACK`, into `scratch`."""
    operand = call.one(name)
    if "packing" in call.op.properties:
        return operand.pointer
    if call.runs(PACK):
        emit_packing(call.b, _tiled(form), scratch, Box.all_of(operand), call.share(PACK))
    return scratch.pointer


def _tiled(form: PackedForm) -> TiledLayout:
    """Return the layout of a form, which has to be a tiled one."""
    assert isinstance(form.layout, TiledLayout)
    return form.layout
