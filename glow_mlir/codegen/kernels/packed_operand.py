"""Operands that a kernel reads in a layout: packed before the run, or in each call, into scratch of the kernel."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.kernels.pack import emit_packing, packing_steps
from glow_mlir.codegen.selection.kernel import Buffer, KernelCall, Operand
from glow_mlir.codegen.selection.packed_form import PackedForm
from glow_mlir.constants.tiled_layout import TiledLayout
from glow_mlir.dialects.target import Target

PACK = "pack"
"""The axis along which packing is cut."""


def packing_scratch(op: Operation, forms: Mapping[str, PackedForm]) -> list[Buffer]:
    """What an instruction needs to pack its operands in each call: nothing where they are packed."""
    if "packing" in op.properties:
        return []
    return [(form.layout.shape, form.element) for form in forms.values()]


def packing_cuts(op: Operation, forms: Mapping[str, PackedForm], target: Target) -> dict[str, int]:
    """How many steps it has to pack the operands of an instruction in each call: none where they are packed."""
    if "packing" in op.properties:
        return {}
    return {PACK: max(packing_steps(_tiled(form), target) for form in forms.values())}


def packed_operand(call: KernelCall, name: str, form: PackedForm, scratch: Operand) -> Value:
    """An operand in a layout, which is packed into `scratch` where it is not; a share of that along `PACK`."""
    operand = call.one(name)
    if "packing" in call.op.properties:
        return operand.pointer
    if call.runs(PACK):
        emit_packing(call.b, _tiled(form), scratch, Box.all_of(operand), call.share(PACK))
    return scratch.pointer


def _tiled(form: PackedForm) -> TiledLayout:
    """The layout of a form, of which machine code packs no other."""
    assert isinstance(form.layout, TiledLayout)
    return form.layout
