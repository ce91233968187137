"""Initialized memory: which elements have been written, to detect reads of undefined content."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import field
from itertools import islice

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.analysis.regions import Region, region_covers, region_of
from glow_mlir.dialects.glow_low.memory import extent_of, has_default_layout
from glow_mlir.support.dataclass import dataclass

MAX_COMPARED = 64
"""Number of recent regions compared with a read before elements are checked one by one."""


@dataclass
class WrittenElements:
    """The elements of allocations and weights written up to some point of a program."""

    _whole: set[SSAValue] = field(default_factory=set[SSAValue])
    """Buffers that are completely written."""
    _regions: dict[SSAValue, dict[Region, None]] = field(default_factory=dict[SSAValue, dict[Region, None]])
    """Regions known to be written, most recent last."""
    _spans: dict[SSAValue, list[tuple[int, int]]] = field(default_factory=dict[SSAValue, list[tuple[int, int]]])
    """Spans covered by dense regions: first element and one past the last, in order."""
    _masks: dict[SSAValue, np.ndarray] = field(default_factory=dict[SSAValue, np.ndarray])
    """A mask of written elements, for buffers whose regions did not answer a query."""

    def add(self, root: SSAValue, region: Region) -> None:
        """Record that a region is written."""
        if root in self._whole or region.is_empty:
            return
        whole = region_of(root)
        if has_default_layout(root) and (region is whole or region_covers(region, whole)):
            self._whole.add(root)
            return
        self._append(root, region)
        if (mask := self._masks.get(root)) is not None:
            _elements(mask, region)[...] = True

    def has(self, root: SSAValue, region: Region) -> bool:
        """Whether all elements of a region are written."""
        if root in self._whole or region.is_empty:
            return True
        regions = self._regions.get(root)
        if regions is None:
            return False
        if region in regions or any(region_covers(other, region) for other in islice(reversed(regions), MAX_COMPARED)):
            return True
        if not self._is_spanned(root, region) and not self._is_marked(root, region):
            return False
        self._append(root, region)
        return True

    def has_any(self, root: SSAValue) -> bool:
        """Whether any element of an allocation or weight is written."""
        return root in self._whole or root in self._regions

    def copy(self) -> WrittenElements:
        """A copy that can be extended."""
        regions = {root: dict(found) for root, found in self._regions.items()}
        spans = {root: list(found) for root, found in self._spans.items()}
        return WrittenElements(set(self._whole), regions, spans)

    def meet(self, other: WrittenElements) -> WrittenElements:
        """Intersect with another set of written elements."""
        both = WrittenElements(self._whole & other._whole)
        for one, another in ((self, other), (other, self)):
            for root in one._whole - both._whole:
                both._keep(root, another._regions.get(root, {}))
            for root, found in one._regions.items():
                both._keep(root, [region for region in found if another.has(root, region)])
        return both

    def _keep(self, root: SSAValue, regions: Iterable[Region]) -> None:
        for region in regions:
            self._append(root, region)

    def _append(self, root: SSAValue, region: Region) -> None:
        regions = self._regions.setdefault(root, {})
        regions.pop(region, None)
        regions[region] = None
        if region.is_dense:
            self._join(self._spans.setdefault(root, []), region.offset, region.end)

    @staticmethod
    def _join(spans: list[tuple[int, int]], begin: int, end: int) -> None:
        """Add a span to others, merging adjacent ones."""
        first = bisect_left(spans, begin, key=lambda span: span[1])
        last = bisect_right(spans, end, key=lambda span: span[0])
        if first < last:
            begin, end = min(begin, spans[first][0]), max(end, spans[last - 1][1])
        spans[first:last] = [(begin, end)]

    def _is_spanned(self, root: SSAValue, region: Region) -> bool:
        """Whether a region lies within a span of written elements."""
        spans = self._spans.get(root, [])
        position = bisect_right(spans, region.offset, key=lambda span: span[0]) - 1
        return position >= 0 and region.end <= spans[position][1]

    def _is_marked(self, root: SSAValue, region: Region) -> bool:
        mask = self._masks.get(root)
        if mask is None:
            # One byte per element, which takes as much memory itself.
            mask = self._masks[root] = np.zeros(extent_of(root), np.bool_)
            for written in self._regions[root]:
                _elements(mask, written)[...] = True
        return bool(_elements(mask, region).all())


def _elements(mask: np.ndarray, region: Region) -> np.ndarray:
    """The slice of a mask for a region."""
    sizes = [size for size, _ in region.axes]
    return np.ndarray(sizes, np.bool_, mask, region.offset, [stride for _, stride in region.axes])
