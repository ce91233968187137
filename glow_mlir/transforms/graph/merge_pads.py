"""`merge-pads`: merge pads into convolutions and pools, drop padding that a slice cuts off, join padded summands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.analysis.ranges import value_ranges
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.canonicalization.data_movement import splat_number
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.ranges import Range
from glow_mlir.dialects.glow_high.transposition import changed
from glow_mlir.dialects.glow_high.windowed import Windowed
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import Shape, has_static_shape, may_be_empty, rank_of, shape_of
from glow_mlir.dialects.windows import CHANNELS_LAST, is_channels_last
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.support.dataclass import dataclass

MAX_TERMS = 2
"""The maximum number of terms that can be added in any order with the same rounding."""


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


class JoinSummands(Pattern):
    """
    Concatenate the summands of a sum that are zero but for parts side by side along one axis.

    At most two terms may be left, so that each element is still rounded as before: additions have an order.
    """

    @rooted
    def match_and_rewrite(self, op: AddOp, rewriter: Rewriter, /) -> None:
        joined = _joined_terms(op)
        if joined is None or (_is_summand(op.result) and _joined_terms(_reader(op)) is not None):
            return
        others, runs = joined
        size, rank = shape_of(op.result)[runs[0][0].axis], rank_of(op.result)
        terms = [*others, *(_joined(run, size, rank, rewriter.emit) for run in runs)]
        rewriter.replace(op, (), [reduce(lambda one, other: rewriter.emit(AddOp, one, other), terms)])


@dataclass(frozen=True)
class Padded:
    """A value that is `source` from the index `start` along an axis on, and zero before and behind it."""

    source: SSAValue
    axis: int
    start: int

    @property
    def stop(self) -> int:
        """The index behind the source."""
        return self.start + shape_of(self.source)[self.axis]


@dataclass(frozen=True)
class MergePadsPass(PatternPass):
    """
    Add the border of a pad to the padding of the convolutions and pools that read it (Glow's MergePadIntoConvolution).

    A zero border merges with convolutions, and with pools that count padding as zeros; a border no greater than any
    element of the input merges with max-pools, which ignore padding. Applies if every reader of the pad accepts the
    border, since otherwise the padded tensor is needed anyway.

    A slice that cuts off outer results of a convolution reduces its padding, if there is enough.

    A sum of values with zero borders, or concatenated with zeros, is a concatenation if the others lie side by side and
    no sum of an element gets another order: gradients of slices become that of what was sliced.
    """

    name = "merge-pads"
    WALKS = (Walk((JoinSummands(),)), Walk((MergePad(),)), Walk((MergeSlice(),)))


def _is_summand(value: SSAValue) -> bool:
    """Whether a value is read by one sum of its own type alone, which then adds its summands itself."""
    users = [use.operation for use in value.uses]
    return len(users) == 1 and isinstance(users[0], AddOp) and users[0].result.type == value.type


def _reader(op: AddOp) -> AddOp:
    """The sum that reads a sum which is its summand."""
    (use,) = op.result.uses
    assert isinstance(use.operation, AddOp), "a summand is read by a sum"
    return use.operation


def _joined_terms(op: AddOp) -> tuple[list[SSAValue], list[list[Padded]]] | None:
    """The terms of a sum whose parts along one axis are joined: others, and runs of parts; `None` if it stays."""
    if not has_static_shape(op.result):
        return None
    summands = _summands(op)
    for axis in sorted({padded.axis for _, padded in summands if padded is not None}):
        parts = [padded for _, padded in summands if padded is not None and padded.axis == axis]
        others = [value for value, padded in summands if padded is None or padded.axis != axis]
        runs = _runs(parts)
        if len(runs) < len(parts) and len(others) + len(runs) <= MAX_TERMS:
            return others, runs
    return None


def _summands(op: AddOp) -> list[tuple[SSAValue, Padded | None]]:
    """
    The summands of a sum, and of sums of the same type that it alone reads, each with its form with zeros; a sum of
    others alone is one summand.
    """
    found: list[tuple[SSAValue, Padded | None]] = []
    for value in op.operands:
        inner = _summands(value.owner) if isinstance(value.owner, AddOp) and _is_summand(value) else []
        if any(padded is not None for _, padded in inner):
            found += inner
        else:
            found.append((value, _padded(value) if value.type == op.result.type and value.has_one_use() else None))
    return found


def _padded(value: SSAValue) -> Padded | None:
    """The form of a value that is zero but for a part along one axis."""
    op = value.owner
    if isinstance(op, PadOp):
        fill = 0 if op.value is None else splat_number(op.value)
        axes = [axis for axis, width in enumerate(op.widths()) if any(width)]
        if fill != 0 or text(op.mode) != "constant" or len(axes) != 1:
            return None
        return Padded(op.input, axes[0], op.widths()[axes[0]][0])
    if isinstance(op, ConcatOp):
        others = [part for part in op.parts if splat_number(part) != 0]
        if len(others) != 1:
            return None
        axis = integer(op.axis) % rank_of(value)
        before = op.parts[: list(op.parts).index(others[0])]
        return Padded(others[0], axis, sum(shape_of(part)[axis] for part in before))
    return None


def _runs(parts: Sequence[Padded]) -> list[list[Padded]]:
    """The parts in order, together where one ends as the next one begins."""
    runs: list[list[Padded]] = []
    for part in sorted(parts, key=lambda part: part.start):
        if runs and runs[-1][-1].stop == part.start:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs


def _joined(run: Sequence[Padded], size: int, rank: int, emit: Emitter) -> SSAValue:
    """The sum of a run of parts along an axis of `size`."""
    axis, sources = run[0].axis, [part.source for part in run]
    value = sources[0] if len(run) == 1 else emit(ConcatOp, sources, axis=axis)
    pads = [0] * (2 * rank)
    pads[axis], pads[rank + axis] = run[0].start, size - run[-1].stop
    return emit(PadOp, value, pads=pads) if any(pads) else value


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
