"""Index of the users of slices of one allocation by position, to avoid a walk over all users."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from glow_mlir.analysis.regions import Region

Item = TypeVar("Item")

Span = tuple[int, int]
"""First element, and one past the last."""


class _Spans(Generic[Item]):
    """Items by span; spans of similar length share a list, which bounds the search."""

    def __init__(self) -> None:
        self._items: dict[Span, dict[Item, None]] = {}
        self._by_length: dict[int, list[Span]] = {}

    def add(self, span: Span, item: Item) -> None:
        """Add an item with that span."""
        items = self._items.setdefault(span, {})
        if not items:
            insort(self._by_length.setdefault((span[1] - span[0]).bit_length(), []), span)
        items[item] = None

    def remove(self, span: Span, item: Item) -> None:
        """Remove an item with that span, if present."""
        items = self._items.get(span)
        if items is None:
            return
        items.pop(item, None)
        if not items:
            del self._items[span]
            spans = self._by_length[(span[1] - span[0]).bit_length()]
            del spans[bisect_left(spans, span)]

    def meeting(self, begin: int, end: int) -> Iterator[Item]:
        """The items whose spans overlap this one."""
        for bits, spans in self._by_length.items():
            first = bisect_left(spans, (begin - (1 << bits), begin))
            for position in range(first, bisect_left(spans, (end, end))):
                if spans[position][1] > begin:
                    yield from self._items[spans[position]]


FEW = 8
"""Maximum number of items for a linear search, which is faster."""


class Extents(Generic[Item]):
    """
    Items by the regions of one allocation that they use.

    `near` returns all items whose regions overlap a given one, and few others: those whose range of elements overlaps.
    Column slices are distinguished by their position in a row.
    """

    def __init__(self) -> None:
        self._few: list[tuple[Region, Item]] | None = []
        """All items, as long as they are few."""
        self._by_stride: dict[int, tuple[_Spans[Item], _Spans[Item]]] = {}
        """Row stride → items by their elements, and by those of a row; 0 for regions without rows."""

    def add(self, region: Region, item: Item) -> None:
        """Add an item that uses a region; an empty one overlaps nothing."""
        if self._few is not None:
            self._few.append((region, item))
            if len(self._few) > FEW:
                many, self._few = self._few, None
                for pair in many:
                    self.add(*pair)
        elif not region.is_empty:
            stride, row = _row_of(region)
            whole, rows = self._by_stride.setdefault(stride, (_Spans[Item](), _Spans[Item]()))
            whole.add((region.offset, region.end), item)
            if stride:
                rows.add(row, item)

    def remove(self, region: Region, item: Item) -> None:
        """Remove an item that uses a region, if it is there."""
        if self._few is not None:
            self._few = [(where, other) for where, other in self._few if other is not item or where != region]
            return
        stride, row = _row_of(region)
        if not region.is_empty and stride in self._by_stride:
            whole, rows = self._by_stride[stride]
            whole.remove((region.offset, region.end), item)
            rows.remove(row, item)

    def near(self, region: Region) -> Iterator[Item]:
        """The items that may overlap a region, lazily and each once; no item may be added during the iteration."""
        seen = set[Item]()
        for item in self._each_near(region):
            if item not in seen:
                seen.add(item)
                yield item

    def _each_near(self, region: Region) -> Iterator[Item]:
        if self._few is not None:
            yield from (item for _, item in self._few)
            return
        if region.is_empty:
            return
        stride, (begin, end) = _row_of(region)
        for other, (whole, rows) in self._by_stride.items():
            if stride and other == stride:
                for shift in (-stride, 0, stride):  # A slice of a row may continue in the next row.
                    yield from rows.meeting(begin + shift, end + shift)
            else:
                yield from whole.meeting(region.offset, region.end)


def _row_of(region: Region) -> tuple[int, Span]:
    """The row stride of a region and its span in the first row; stride 0 if rows are not apart."""
    if not region.axes:
        return 0, (0, 0)
    (_, stride), *inner = region.axes
    length = 1 + sum((size - 1) * step for size, step in inner)
    begin = region.offset % stride
    return (stride, (begin, begin + length)) if length < stride else (0, (0, 0))
