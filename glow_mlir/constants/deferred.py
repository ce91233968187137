"""
Deferred arrays: elements are computed on demand, in parts that fit into a cache.

The weights of a model pass through several forms (transposed, scaled, packed for a kernel); only the last one is
kept. As deferred arrays, intermediate forms cost no memory, and the last is written directly to its destination.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from glow_mlir.constants.packed_layout import Blocks, PackedLayout
from glow_mlir.support.dtypes import name_of

BLOCK_BYTES = 1 << 18
"""
Default bytes of a part: its intermediate values fit into a second-level cache, and are too small for an allocator to
return them to the system each time.
"""

FORGET_BYTES = 1 << 24
"""Bytes of parts after which memory of the mapped files is released."""


class FileMap(mmap.mmap):
    """A read-only memory-mapped file."""

    @staticmethod
    def of(file: BinaryIO) -> FileMap:
        """Map an open, nonempty file; raises `ValueError` or `OSError` if it cannot be mapped."""
        return FileMap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def forget(self) -> None:
        """Release the memory, if the system can; later reads fetch it from the file again."""
        if hasattr(self, "madvise"):
            self.madvise(mmap.MADV_DONTNEED)


def is_in_folder(folder: Path, name: str) -> bool:
    """Whether a name refers to a file below that folder, without symbolic links or parent references."""
    normal_path = os.path.normpath(name)
    if os.path.isabs(normal_path) or normal_path.split(os.sep)[0] == os.pardir:
        return False
    try:
        return (folder / name).resolve() == folder.resolve() / normal_path and (folder / name).is_file()
    except (OSError, ValueError):
        return False


MAX_ELEMENTS, MAX_RANK = 1 << 56, 8
"""The maximum number of elements, and of axes, of an array in a file."""


def is_array_shape(shape: Sequence[int]) -> bool:
    """Whether a file may have an array of that shape: also one without elements has sizes that an array can have."""
    return len(shape) <= MAX_RANK and min(shape, default=0) >= 0 and math.prod(max(s, 1) for s in shape) <= MAX_ELEMENTS


class Deferred(ABC):
    """An array that is not computed yet, of known `dtype` and `shape`, with at least one axis. Immutable."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _whole: weakref.ref[np.ndarray] | None = None

    @property
    @abstractmethod
    def recipe(self) -> str:
        """A complete description of how the array derives from others, named by their digests."""

    @abstractmethod
    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        """The elements [begin, end) along an axis, as a read-only array."""

    @abstractmethod
    def separable(self, axis: int) -> bool:
        """Whether a part along that axis costs no more than its share of the whole."""

    @property
    def sources(self) -> Sequence[Deferred]:
        """The arrays that this one is computed from."""
        return ()

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        """The array computed in the same way from other sources of the same shapes and types."""
        return self

    @property
    def unwidened(self) -> Deferred:
        """The array of the same numbers in the narrower type that they were converted from; itself if they were not."""
        return self

    @cached_property
    def is_per_layer(self) -> bool:
        """Whether the array is computed from `LayerWeights`, so that its elements differ between layers."""
        return any(source.is_per_layer for source in self.sources)

    @cached_property
    def digest(self) -> str:
        """A unique digest of the array: element type, shape, and content or recipe."""
        state = hashlib.sha256(f"{name_of(self.dtype)}{self.shape}".encode())
        self._update(state)
        return f"sha256:{state.hexdigest()[:32]}"

    def _update(self, state: Any) -> None:
        """Add content or recipe to a hash."""
        state.update(self.recipe.encode())

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def array(self) -> np.ndarray:
        """The whole as a read-only array; cached while a caller holds it."""
        known = None if self._whole is None else self._whole()
        if known is None:
            known = np.empty(self.shape, self.dtype)
            self.write(known)
            known.flags.writeable = False
            self._whole = weakref.ref(known)
        return known

    def write(self, target: np.ndarray) -> None:
        """Write the whole to a contiguous array of its shape and type."""
        axis = self._best_axis()
        if axis is None:
            target[...] = self.part(0, 0, self.shape[0])
            return
        for begin, end in self.spans(axis):
            target[(slice(None),) * axis + (slice(begin, end),)] = self.part(axis, begin, end)

    def _best_axis(self) -> int | None:
        """The best axis along which to compute parts; `None` if there is none."""
        return next((axis for axis, size in enumerate(self.shape) if size > 1 and self.separable(axis)), None)

    def spans(self, axis: int, unit: int = 1, sections: int = 1) -> Iterator[tuple[int, int]]:
        """
        Begin and end of the parts along a section of an axis, in multiples of `unit` except the last, of bounded size.

        Releases the memory of files behind parts that were computed.
        """
        size = self.shape[axis] // sections
        line = max(self.nbytes // max(size, 1), 1)
        step = max(BLOCK_BYTES // (line * unit), 1) * unit
        kept = 0
        for begin in range(0, size, step):
            yield begin, min(begin + step, size)
            kept += step * line
            if kept >= FORGET_BYTES:
                self.forget()
                kept = 0

    def sections(self, blocks: Blocks, begin: int, end: int) -> np.ndarray:
        """The elements [begin, end) of each section of the axis of `blocks`."""
        if blocks.sections == 1:
            return self.part(blocks.axis, begin, end)
        size = self.shape[blocks.axis] // blocks.sections
        offsets = [section * size for section in range(blocks.sections)]
        parts = [self.part(blocks.axis, offset + begin, offset + end) for offset in offsets]
        return np.concatenate(parts, axis=blocks.axis)

    def pack(self, layout: PackedLayout, begin: int, end: int, packed: np.ndarray) -> None:
        """
        Pack the elements [begin, end) of each section of an operand's axis into an array, as `PackedLayout.write` does.

        Subclasses do this faster where their elements are in a form that is close to the packed one.
        """
        layout.write(self.sections(layout.blocks, begin, end), packed)

    def forget(self) -> None:
        """Release the memory of files that this array is read from; it is read again on demand."""
        for source in self.sources:
            source.forget()

    def transposed(self, permutation: Sequence[int]) -> Deferred:
        """The transposed array."""
        return Transposed(self, tuple(permutation))

    def reshaped(self, shape: Sequence[int]) -> Deferred:
        """The reshaped array."""
        return self if tuple(shape) == self.shape else Reshaped(self, tuple(shape))


class Stored(Deferred):
    """
    An array in memory or mapped from a file, in any memory order. It must not change.

    `recipe` describes how it was made, and replaces its content in the digest if given.
    """

    def __init__(self, array: np.ndarray, recipe: str = "") -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self._array = array.view()
        self._array.flags.writeable = False
        self._recipe = recipe

    @property
    def recipe(self) -> str:
        return self._recipe

    def _update(self, state: Any) -> None:
        if self._recipe:
            state.update(self._recipe.encode())
            return
        for data in self.contents():
            state.update(data)

    def contents(self) -> Iterator[memoryview]:
        """The bytes of the elements in order, in parts; releases the memory of files behind them."""
        whole = Stored(np.ascontiguousarray(self._array).reshape(-1).view(np.uint8))
        if self.nbytes <= BLOCK_BYTES:  # Releasing so few bytes takes longer than reading them.
            yield whole.array().data
            return
        for begin, end in whole.spans(0):
            yield whole.part(0, begin, end).data
        self.forget()

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        return self._array[(slice(None),) * axis + (slice(begin, end),)]

    def write(self, target: np.ndarray) -> None:
        if self.shape:
            super().write(target)
        else:
            target[...] = self._array

    def separable(self, axis: int) -> bool:
        return True

    def array(self) -> np.ndarray:
        return self._array

    def _best_axis(self) -> int | None:
        # Along the largest stride, a part is contiguous in the file.
        return max(range(len(self.shape)), key=lambda axis: abs(self._array.strides[axis]), default=None)

    def forget(self) -> None:
        if (file := _file_map(self._array)) is not None:
            file.forget()

    def transposed(self, permutation: Sequence[int]) -> Deferred:
        return Stored(self._array.transpose(permutation), f"transpose {tuple(permutation)} {self.digest}")

    def reshaped(self, shape: Sequence[int]) -> Deferred:
        if tuple(shape) == self.shape:
            return self
        view = self._array.reshape(shape) if self._array.flags.c_contiguous else None
        if view is None:
            return Reshaped(self, tuple(shape))
        return Stored(view, f"reshape {self.digest}")


def _file_map(array: np.ndarray) -> FileMap | None:
    """The map that an array is a view of, or `None`."""
    owner: Any = array
    while owner is not None and not isinstance(owner, FileMap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


class Transposed(Deferred):
    """Another array, transposed by `permutation`."""

    def __init__(self, source: Deferred, permutation: tuple[int, ...]) -> None:
        self.source, self.permutation = source, permutation
        self.shape, self.dtype = tuple(source.shape[axis] for axis in permutation), source.dtype

    @property
    def recipe(self) -> str:
        return f"transpose {self.permutation} {self.source.digest}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return sources[0].transposed(self.permutation)

    @property
    def unwidened(self) -> Deferred:
        return self.with_sources([self.source.unwidened])

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        return self.source.part(self.permutation[axis], begin, end).transpose(self.permutation)

    def separable(self, axis: int) -> bool:
        return self.source.separable(self.permutation[axis])


class Reshaped(Deferred):
    """Another array, reshaped."""

    def __init__(self, source: Deferred, shape: tuple[int, ...]) -> None:
        self.source, self.shape, self.dtype = source, shape, source.dtype

    @property
    def recipe(self) -> str:
        return f"reshape {self.source.digest}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return sources[0].reshaped(self.shape)

    @property
    def unwidened(self) -> Deferred:
        return self.with_sources([self.source.unwidened])

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        origin = self._origin(axis)
        if origin is None:
            return self.source.array().reshape(self.shape)[(slice(None),) * axis + (slice(begin, end),)]
        part = self.source.part(origin, begin, end)
        return part.reshape(*self.shape[:axis], end - begin, *self.shape[axis + 1 :])

    def separable(self, axis: int) -> bool:
        origin = self._origin(axis)
        return origin is not None and self.source.separable(origin)

    def _origin(self, axis: int) -> int | None:
        """The axis of the source equal to this one: with as many elements before, along and behind it."""
        before, size = math.prod(self.shape[:axis]), self.shape[axis]
        count = 1
        for origin, extent in enumerate(self.source.shape):
            if (count, extent) == (before, size):
                return origin
            count *= extent
        return None


class Scaled(Deferred):
    """
    Another array times `factors`, which broadcast to it.

    Products are computed in f64, one factor after the other, and rounded to `dtype` at the end.
    """

    def __init__(self, source: Deferred, factors: Sequence[np.ndarray], dtype: np.dtype[Any]) -> None:
        self.source, self.factors = source, tuple(factors)
        self.shape, self.dtype = source.shape, dtype

    @property
    def recipe(self) -> str:
        scales = (f"{factor.shape} {factor.tobytes().hex()}" for factor in self.factors)
        return f"scale {self.source.digest} {' '.join(scales)}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return Scaled(sources[0], self.factors, self.dtype)

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        picked = (slice(None),) * axis + (slice(begin, end),)
        factors = [factor[picked] if factor.shape[axis] > 1 else factor for factor in self.factors]
        return scaled(self.source.part(axis, begin, end), factors, self.dtype)

    def separable(self, axis: int) -> bool:
        return self.source.separable(axis)

    def largest(self) -> float:
        """The largest magnitude of an element; NaN if there is one."""
        common = tuple(axis for axis in range(len(self.shape)) if all(f.shape[axis] == 1 for f in self.factors))
        peaks = magnitudes(self.source, common)
        return float(np.max(np.abs(scaled(peaks, self.factors, self.dtype)), initial=0.0))


def scaled(array: np.ndarray, factors: Sequence[np.ndarray], dtype: np.dtype[Any]) -> np.ndarray:
    """An array times factors that broadcast to it: products in f64, rounded to `dtype` at the end."""
    for number, factor in enumerate(factors, start=1):
        result = np.empty(array.shape, np.float64 if number < len(factors) else dtype)
        # Rounds part by part, without an f64 copy of the whole.
        array = np.multiply(array, factor, out=result, dtype=np.float64, casting="same_kind")
    return array


def magnitudes(source: Deferred, axes: tuple[int, ...]) -> np.ndarray:
    """The largest magnitudes over some axes of a float array, which keep size 1; NaN if there is one."""
    kept = [axis for axis in range(len(source.shape)) if axis not in axes and source.separable(axis)]
    if not kept or 0 in source.shape:
        return _peaks(source.array(), axes)
    spans = source.spans(kept[0])
    return np.concatenate([_peaks(source.part(kept[0], *span), axes) for span in spans], axis=kept[0])


def _peaks(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The largest magnitudes over some axes, without a temporary array of all magnitudes."""
    highest = array.max(axis=axes, keepdims=True, initial=0)
    return np.maximum(highest, -array.min(axis=axes, keepdims=True, initial=0))


class Joined(Deferred):
    """Arrays of one type, concatenated along an axis."""

    def __init__(self, parts: Sequence[Deferred], axis: int) -> None:
        self.parts, self.axis = tuple(parts), axis
        first = parts[0]
        length = sum(part.shape[axis] for part in parts)
        self.shape, self.dtype = (*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype

    @property
    def recipe(self) -> str:
        return f"join {self.axis} {' '.join(part.digest for part in self.parts)}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return self.parts

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return Joined(sources, self.axis)

    @property
    def unwidened(self) -> Deferred:
        parts = [part.unwidened for part in self.parts]
        return self if any(part.dtype != parts[0].dtype for part in parts) else self.with_sources(parts)

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        if axis != self.axis:
            return np.concatenate([part.part(axis, begin, end) for part in self.parts], axis=self.axis)
        found: list[np.ndarray] = []
        for part in self.parts:
            size = part.shape[axis]
            if max(begin, 0) < min(end, size):
                found.append(part.part(axis, max(begin, 0), min(end, size)))
            begin, end = begin - size, end - size
        return np.concatenate(found, axis=axis)

    def separable(self, axis: int) -> bool:
        return all(part.separable(axis) for part in self.parts)


class Bytes(Deferred):
    """The bytes of the elements of another array, in order along the last axis."""

    def __init__(self, source: Deferred) -> None:
        self.source, self.dtype = source, np.dtype(np.uint8)
        self.shape = (*source.shape[:-1], source.shape[-1] * source.dtype.itemsize)

    @property
    def recipe(self) -> str:
        return f"bytes {self.source.digest}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return Bytes(sources[0])

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        if axis == len(self.shape) - 1:
            return self.array()[..., begin:end]
        return np.ascontiguousarray(self.source.part(axis, begin, end)).view(np.uint8)

    def separable(self, axis: int) -> bool:
        return axis < len(self.shape) - 1 and self.source.separable(axis)

    def write(self, target: np.ndarray) -> None:
        if self._best_axis() is None:
            target[...] = np.ascontiguousarray(self.source.array()).view(np.uint8)
        else:
            super().write(target)


class Packed(Deferred):
    """Another array in a packed layout, built in parts, with elements of type `dtype`."""

    def __init__(self, source: Deferred, layout: PackedLayout, dtype: np.dtype[Any]) -> None:
        self.source, self.layout, self.blocks = source, layout, layout.blocks
        self.shape, self.dtype = layout.shape, dtype

    @property
    def recipe(self) -> str:
        return f"{self.layout.recipe} {self.source.shape} {self.source.digest}"

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return Packed(sources[0], self.layout, self.dtype)

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        if axis != self.blocks.target:
            return self.array()[(slice(None),) * axis + (slice(begin, end),)]
        size = self.source.shape[self.blocks.axis] // self.blocks.sections
        first, last = begin * self.blocks.unit, min(end * self.blocks.unit, size)
        return self.layout.pack(self.source.sections(self.blocks, first, last), self.dtype)

    def separable(self, axis: int) -> bool:
        return axis == self.blocks.target and self.source.separable(self.blocks.axis)

    def write(self, target: np.ndarray) -> None:
        axis, unit = self.blocks.axis, self.blocks.unit
        # Arrays that cannot be computed in parts are computed once, beforehand.
        source = self.source if self.source.separable(axis) else Stored(self.source.array(), "whole")
        for begin, end in source.spans(axis, unit, self.blocks.sections):
            packed = (slice(None),) * self.blocks.target + (slice(begin // unit, -(-end // unit)),)
            source.pack(self.layout, begin, end, target[packed])
