"""`merge-pads`: merge pads into convolutions and pools, and drop padding that a slice cuts off."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from glow_mlir.analysis.ranges import value_ranges
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.glow_high.transposition import changed
from glow_mlir.dialects.glow_high.windowed import Windowed
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import Shape, may_be_empty, shape_of
from glow_mlir.dialects.windows import CHANNELS_LAST, is_channels_last
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.support.dataclass import dataclass


class MergePad(Pattern):
    """Merge a pad into the padding of all its readers, if all accept it."""

    @rooted
    def match_and_rewrite(self, op: PadOp, rewriter: Rewriter, /) -> None:
        fill = 0 if op.value is None else splat_number(op.value)
        if fill is None or text(op.mode) != "constant":
            return
        known = rewriter.analysis(value_ranges).get(op.input, Range())
        merged: list[tuple[Operation, HighOp]] = []
        for user in dict.fromkeys(use.operation for use in op.result.uses):
            new = with_border(user, op, fill, known)
            if new is None:
                for _, unused in merged:
                    unused.erase()
                return
            merged.append((user, new))
        for user, new in merged:
            rewriter.replace(user, new)


class MergeSlice(Pattern):
    """Reduce the padding of a convolution instead of slicing off its outer results."""

    @rooted
    def match_and_rewrite(self, op: SliceOp, rewriter: Rewriter, /) -> None:
        conv = op.input.owner
        if not isinstance(conv, ConvOp) or not op.input.has_one_use() or may_be_empty(op.result):
            return
        pads = remaining_pads(conv, op)
        if pads is None:
            return
        properties: dict[str, Attribute] = {**conv.properties, "pads": to_attribute(pads)}
        location = fuse_locations([conv.location, op.location])
        rewriter.replace(op, ConvOp.inferred(conv.operands, properties, location))


@dataclass(frozen=True)
class MergePadsPass(PatternPass):
    """
    Add the border of a pad to the padding of the convolutions and pools that read it (Glow's MergePadIntoConvolution).

    A zero border merges with convolutions, and with pools that count padding as zeros; a border no greater than any
    element of the input merges with max-pools, which ignore padding. Applies if every reader of the pad accepts the
    border, since otherwise the padded tensor is needed anyway.

    A slice that cuts off outer results of a convolution reduces its padding, if there is enough.
    """

    name = "merge-pads"
    WALKS = (Walk((MergePad(),)), Walk((MergeSlice(),)))


def with_border(user: Operation, pad: PadOp, fill: float, known: Range) -> HighOp | None:
    """Rebuild `user`, a reader of `pad`, on the unpadded input; `None` if it does not accept the border."""
    if not isinstance(user, Windowed) or user.operands[0] is not pad.result or pad.result in user.operands[1:]:
        return None
    pads = added_pads(user, pad)
    changes = None if pads is None else user.padded(pads, fill, known)
    if changes is None:
        return None
    location = fuse_locations([pad.location, user.location])
    return type(user).inferred([pad.input, *user.operands[1:]], changed(user, **changes), location)


def added_pads(user: Windowed, pad: PadOp) -> Shape | None:
    """The padding of `user` plus the border of `pad`; `None` if that pads other axes too."""
    widths = pad.widths()
    spatial = widths[1:-1] if text(user.properties["layout"]) == CHANNELS_LAST else widths[2:]
    if sum(map(sum, widths)) != sum(map(sum, spatial)):
        return None
    border = (*(before for before, _ in spatial), *(after for _, after in spatial))
    return tuple(old + new for old, new in zip(user.window().pads, border, strict=True))


def remaining_pads(conv: ConvOp, cut: SliceOp) -> Shape | None:
    """The padding with which `conv` computes exactly the slice `cut`; `None` if padding cannot express it."""
    ranges, sizes = cut.ranges(), shape_of(conv.result)
    spatial = range(1, len(sizes) - 1) if is_channels_last(conv.layout) else range(2, len(sizes))
    if any(taken.step != 1 or (axis not in spatial and len(taken) < sizes[axis]) for axis, taken in enumerate(ranges)):
        return None
    window = conv.window()
    strides = (*window.strides, *window.strides)
    cuts = (*(ranges[axis].start for axis in spatial), *(sizes[axis] - ranges[axis].stop for axis in spatial))
    pads = tuple(pad - count * stride for pad, count, stride in zip(window.pads, cuts, strides, strict=True))
    return pads if min(pads, default=0) >= 0 else None
