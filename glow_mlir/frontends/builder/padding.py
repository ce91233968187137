"""Padding, shared by all front ends."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import PadOp
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.builder.slices import checked_part, cut


def pad_value(
    node: NodeBuilder, value: SSAValue, widths: Sequence[tuple[int, int]], mode: str, fill: SSAValue | None
) -> SSAValue:
    """Pad `value` by the given widths before and after each axis; negative widths crop."""
    shape = sizes_of(value)
    kept = {axis: (max(-before, 0), shape[axis] - max(-after, 0)) for axis, (before, after) in enumerate(widths)}
    if any(largest(last - first) < 0 for first, last in kept.values()):
        raise ModelError(f"{node.kind} cuts off more than shape {shape} has", node=node.name)
    unsure = [axis for axis, (first, last) in kept.items() if smallest(last - first) < 0]
    value = cut(node, value, {axis: bounds for axis, bounds in kept.items() if axis not in unsure})
    for axis in unsure:
        value = checked_part(node, value, axis, *kept[axis])
    pads = [max(0, before) for before, _ in widths] + [max(0, after) for _, after in widths]
    if not any(pads):
        return value
    return node.emit(PadOp, value, fill if mode == "constant" else None, pads=pads, mode=mode)
