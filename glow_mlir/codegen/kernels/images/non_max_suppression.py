"""The kernel of non-maximum suppression."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import f32

from glow_mlir.codegen.access import lanes_for, load, read_index, store
from glow_mlir.codegen.builder.nests import Index, chunks, linear
from glow_mlir.codegen.builder.types import i1, i32, i64, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.selection import clear, counted
from glow_mlir.codegen.kernels.elements.sort_keys import MAX_POSITIONS, Sort, order_key, sorts_keys
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.selection import NonMaxSuppressionOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import is_empty, largest_shape
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

_LOW_X, _LOW_Y, _HIGH_X, _HIGH_Y, _AREA = range(5)
"""Rows of the scratch buffer with the boxes of an image."""


@kernel("non-max-suppression")
class NonMaxSuppressionKernel(Kernel[NonMaxSuppressionOp]):
    """
    The boxes of a class in the order of their scores, each compared by vectors with those that were selected.

    Boxes are sorted by keys. Where there is no memory for that, each selected box takes a pass over the boxes of the
    class, which removes those that overlap it, by setting their scores to NaN, and finds the best remaining one.
    """

    name = "non-max-suppression"
    RUN_TIME_SIZES = True
    TIME_BY_VALUES = True

    def scratch(self, op: NonMaxSuppressionOp, target: Target) -> Sequence[Buffer]:
        boxes = max(1, largest_shape(op.inputs()[0])[1])
        if not _sorts(op, target):
            return [((_AREA + 1, boxes), f32), ((boxes,), f32)]
        return [((_AREA + 1, _chosen(boxes, target)), f32), *_SCORES.scratch(boxes, target)]

    def emit(self, call: KernelCall[NonMaxSuppressionOp]) -> None:
        b, scores, max_boxes = call.b, call.one("scores"), call.maybe("max_output_boxes_per_class")
        clear(call, "result", "count")
        batches, classes, boxes = scores.extents
        if max_boxes is None or is_empty(scores.value):
            return
        limit = b.max(b.min(b.index(read_index(b, max_boxes, 0)), integer(call.op.limit)), 0)
        kind = _SortedBoxes if _sorts(call.op, call.target) else _Boxes
        image = kind(call, boxes, largest_shape(scores.value)[2])
        with b.loop(0, batches) as batch:
            image.read(batch)
            with b.loop(0, classes) as number:
                image.select(batch, number, limit)


_SCORES = Sort(f32, descending=True)
"""The sort of boxes by their scores."""


def _sorts(op: NonMaxSuppressionOp, target: Target) -> bool:
    """Whether boxes are sorted by keys."""
    return sorts_keys(target) and largest_shape(op.inputs()[0])[1] < MAX_POSITIONS


def _chosen(boxes: int, target: Target) -> int:
    """The number of selected boxes that there is memory for: those of whole vectors."""
    width = target.vector_width(f32)
    return -(-boxes // width) * width


@dataclass(frozen=True)
class _Boxes:
    """The boxes of one image and their scores in one class, in scratch memory."""

    call: KernelCall[NonMaxSuppressionOp]
    count: Index
    capacity: int
    """The largest number of boxes."""

    def select(self, batch: Value, number: Value, limit: Value) -> None:
        """Select the boxes of a class."""
        self.start(batch, number)
        self.take(batch, number, limit)

    def _row(self, row: int, box: Index) -> Value:
        return self.call.many("scratch")[0].pointer.at(self.call.b.index(box) + row * self.capacity, f32)

    def _left(self, box: Index) -> Value:
        return self.call.many("scratch")[1].pointer.at(box, f32)

    def read(self, batch: Value) -> None:
        """Compute corners and areas of all boxes of an image."""
        with self.call.b.loop(0, self.count) as box:
            for row, value in enumerate(self._geometry(batch, box)):
                self._row(row, box).store(value)

    def _geometry(self, batch: Value, box: Value) -> list[Value]:
        """The corners and the area of a box."""
        b, boxes = self.call.b, self.call.one("boxes")
        start = linear([batch, box], boxes.strides[:2])
        corners = self._corners([load(b, boxes, start + column * boxes.strides[2], 1, 1) for column in range(4)])
        return [*corners, (corners[_HIGH_X] - corners[_LOW_X]) * (corners[_HIGH_Y] - corners[_LOW_Y])]

    def _corners(self, numbers: Sequence[Value]) -> list[Value]:
        b = self.call.b
        if flag(self.call.op.center_point_box):
            (x, y), halves = numbers[:2], [size / 2.0 for size in numbers[2:]]
            return [x - halves[0], y - halves[1], x + halves[0], y + halves[1]]
        y1, x1, y2, x2 = numbers
        return [b.min(x1, x2), b.min(y1, y2), b.max(x1, x2), b.max(y1, y2)]

    def start(self, batch: Value, number: Value) -> None:
        """Start a class with the boxes whose score is above the threshold."""
        with self.call.b.loop(0, self.count) as box:
            self._left(box).store(self._score(batch, number, box))

    def _score(self, batch: Value, number: Value, box: Value) -> Value:
        """The score of a box; NaN unless it is above the threshold."""
        b, scores, threshold = self.call.b, self.call.one("scores"), self.call.maybe("score_threshold")
        score = load(b, scores, linear([batch, number, box], scores.strides), 1, 1)
        if threshold is None:
            return score
        return b.select(score > load(b, threshold, 0, 1, 1), score, math.nan)

    def take(self, batch: Value, number: Value, limit: Value) -> None:
        """Select boxes one after the other, up to a limit."""
        b = self.call.b

        def step(taken: Value, best: Value) -> Sequence[Value]:
            self._write(batch, number, best)
            return taken + 1, self._best(best)

        def goes_on(taken: Value, best: Value) -> Value:
            return (taken < limit) & (best >= 0) & ~self.call.is_cancelled()

        b.repeat([b.index(0), self._best(None)], step, goes_on)

    def _write(self, batch: Value, number: Value, box: Value) -> None:
        """Add a box to the result."""
        b, result = self.call.b, self.call.result
        row = counted(self.call) * result.strides[0]
        for column, value in enumerate((batch, number, box)):
            store(b, result, row + column * result.strides[1], b.cast(value, i64))

    def _best(self, taken: Value | None) -> Value:
        """Remove the boxes that overlap the one just taken, and return the best remaining box, or -1."""
        b = self.call.b
        width = lanes_for(self.call.target, f32, (1,))
        value, index = b.constant(-math.inf, f32), b.constant(-1, i32)
        for start, stop, lanes in chunks(self.count, width, 1):
            initial = [b.constant(-math.inf, vector(f32, lanes)), b.constant(-1, vector(i32, lanes))]
            with b.loop(start, stop, lanes, carried=initial) as loop:
                boxes = b.iota(i32, lanes) + b.cast(loop.index, i32)
                scores = self._scores(loop.index, boxes, taken, lanes)
                is_better = (scores > loop.values[0]) | ((loop.values[1] < 0) & scores.eq(scores))
                loop.set(b.select(is_better, scores, loop.values[0]), b.select(is_better, boxes, loop.values[1]))
            for lane in range(lanes):
                other, box = (b.extract(part, lane) for part in loop.results)
                is_better = (other > value) | (other.eq(value) & (box < index)) | (index < 0)
                is_better = is_better & (box >= 0)
                value, index = b.select(is_better, other, value), b.select(is_better, box, index)
        return b.index(index)

    def _scores(self, first: Value, boxes: Value, taken: Value | None, lanes: int) -> Value:
        """Return the scores of some boxes, NaN for those that were removed."""
        b = self.call.b
        scores = self._left(first).load(vector(f32, lanes))
        if taken is None:
            return scores
        gone = self._overlap(first, taken, lanes) | boxes.eq(b.cast(taken, i32))
        scores = b.select(gone, b.constant(math.nan, scores.type), scores)
        self._left(first).store(scores)
        return scores

    def _overlap(self, first: Value, taken: Value, lanes: int) -> Value:
        """Whether boxes overlap the one that was taken by more than the threshold."""
        one = [self._row(row, taken).load(f32) for row in range(_AREA + 1)]
        many = [self._row(row, first).load(vector(f32, lanes)) for row in range(_AREA + 1)]
        return self._overlaps(one, many)

    def _overlaps(self, one: Sequence[Value], many: Sequence[Value]) -> Value:
        """Whether boxes, as corners and areas, overlap one by more than the threshold."""
        b = self.call.b
        width = b.min(many[_HIGH_X], one[_HIGH_X]) - b.max(many[_LOW_X], one[_LOW_X])
        height = b.min(many[_HIGH_Y], one[_HIGH_Y]) - b.max(many[_LOW_Y], one[_LOW_Y])
        common = width * height
        union = many[_AREA] + one[_AREA] - common
        areas = (many[_AREA] > 0.0) & (common > 0.0) & (union > 0.0)
        some = (width > 0.0) & (height > 0.0) & areas
        return some & (common / union > self._threshold(self.call.maybe("iou_threshold")))

    def _threshold(self, operand: Operand | None) -> Value | float:
        return 0.0 if operand is None else load(self.call.b, operand, 0, 1, 1)


@dataclass(frozen=True)
class _SortedBoxes(_Boxes):
    """The boxes of a class in the order of their scores, and those that were selected."""

    def _chosen(self, row: int, place: Index) -> Value:
        stride = _chosen(self.capacity, self.call.target)
        return self.call.many("scratch")[0].pointer.at(self.call.b.index(place) + row * stride, f32)

    def read(self, batch: Value) -> None:
        """Nothing: boxes are read in their order."""

    def select(self, batch: Value, number: Value, limit: Value) -> None:
        """Go through the boxes of a class, the best first; select those that overlap none of the selected ones."""
        b, buffers = self.call.b, self.call.many("scratch")[1:]
        entries = buffers[0].pointer
        with b.loop(0, self.count, carried=[b.index(0)]) as loop:
            score = self._score(batch, number, loop.index)
            key = order_key(b, b.bits_of(score), f32, descending=True)
            _SCORES.put(entries, loop.values[0], _SCORES.entry(b, key, loop.index))
            loop.set(loop.values[0] + b.index(b.cast(score.eq(score), i64)))
        (left,) = loop.results
        _SCORES.first(b, buffers, self.capacity, left, left)

        def step(place: Value, taken: Value) -> Sequence[Value]:
            box = _SCORES.position(b, entries, place)
            corners = self._geometry(batch, box)
            is_free = ~self._overlaps_chosen(corners, taken)
            with b.when(is_free):
                self._write(batch, number, box)
                for row, value in enumerate(corners):
                    self._chosen(row, taken).store(value)
            return place + 1, taken + b.index(b.cast(is_free, i64))

        def goes_on(place: Value, taken: Value) -> Value:
            return (place < left) & (taken < limit) & ~self.call.is_cancelled()

        b.repeat([b.index(0), b.index(0)], step, goes_on)

    def _overlaps_chosen(self, corners: Sequence[Value], taken: Value) -> Value:
        """Whether a box overlaps one of those that were selected."""
        b, lanes = self.call.b, self.call.target.vector_width(f32)

        def step(place: Value, _: Value) -> Sequence[Value]:
            many = [self._chosen(row, place).load(vector(f32, lanes)) for row in range(_AREA + 1)]
            is_chosen = b.iota(i32, lanes) + b.cast(place, i32) < b.cast(taken, i32)
            return place + lanes, b.any(self._overlaps(corners, many) & is_chosen)

        def goes_on(place: Value, overlaps: Value) -> Value:
            return (place < taken) & ~overlaps

        return b.repeat([b.index(0), b.constant(0, i1)], step, goes_on)[1]
