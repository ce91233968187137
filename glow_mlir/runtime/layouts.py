"""
Arrays for bindings with symbolic sizes: machine code lays them out for the largest shape.

An array with that layout is used in place; this includes all C-contiguous arrays in which only the first size is
symbolic, so outputs of this kind are new arrays of the exact shape. Others are copied from or to a buffer. An output
that extends an input is written after the input's elements, if these are the last used elements of an array from an
earlier call; so data that grows from call to call is not copied.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import mul
from types import EllipsisType

import numpy as np

from glow_mlir.errors import InputError, OutOfMemoryError
from glow_mlir.runtime.aligned_memory import new_array
from glow_mlir.runtime.artifact import Binding
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes, Symbol, SymbolicSize, tell_symbols, wrong_size


def symbol_values(declared: Iterable[tuple[str, Sizes]], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """
    The values of symbols for inputs with the `declared` names and sizes, and these shapes.

    Raises `InputError` if they are inconsistent.
    """
    values: dict[str, int] = {}
    inputs = [(name, sizes, shapes[name]) for name, sizes in declared]
    for name, sizes, shape in inputs:
        if len(shape) != len(sizes):
            raise InputError(f"input '{name}' has {len(shape)} axes, not {len(sizes)}")
    tell_symbols((pair for _, sizes, shape in inputs for pair in zip(sizes, shape, strict=True)), values)
    for name, sizes, shape in inputs:
        if fault := wrong_size(sizes, shape, values):
            hint = "sizes of a call must be consistent and within the bounds of the session"
            raise InputError(f"input '{name}': {fault}", hint=hint)
    return values


Part = tuple[slice | EllipsisType, ...]
"""An index that takes the first elements along each axis of an array."""


@dataclass(frozen=True)
class OutputShape:
    """The shape of an output within an array of the largest shape, for one call."""

    shape: tuple[int, ...]
    part: Part
    is_dense: bool
    """Whether a C-contiguous array of this shape has the layout of machine code."""
    is_large: bool
    """Whether an array of the largest shape is much larger."""

    @staticmethod
    def of(binding: Binding, values: Mapping[str, int]) -> OutputShape:
        """
        The shape for these values of symbols; axes of unknown symbols, which the call computes, have their maximum.
        """
        shape = shape_of(binding, values)
        is_large = math.prod(binding.shape) > 2 * math.prod(shape)
        return OutputShape(shape, _part(shape), is_dense(shape, binding), is_large)


@dataclass(frozen=True)
class CallSizes:
    """Results of shape inference for a call: values of symbols, in the order of an entry, and shapes of outputs."""

    values: Mapping[str, int]
    numbers: tuple[int, ...]
    """The values; the maximum for symbols that the call computes."""
    output_shapes: Mapping[str, OutputShape]
    is_complete: bool
    """Whether inputs determine all symbols."""


MAX_KEPT = 256
"""The maximum number of input shapes for which an entry caches the results of shape inference."""


class Sizing:
    """Shape inference for the calls of an entry, cached by the shapes of inputs."""

    def __init__(self, bindings: Sequence[Binding], symbols: Sequence[Symbol]) -> None:
        self._sized = [(b.name, b.sizes) for b in bindings if b.role == "input" and b.sizes]
        self._outputs = [b for b in bindings if b.role == "output" and b.sizes]
        self._symbols = symbols
        self._known: dict[tuple[tuple[int, ...], ...], CallSizes] = {}

    def of(self, inputs: Mapping[str, np.ndarray]) -> CallSizes:
        """The sizes for these inputs; raises `InputError` if their shapes do not agree."""
        return self.of_shapes([inputs[name].shape for name, _ in self._sized])

    def of_shapes(self, given: Sequence[tuple[int, ...]]) -> CallSizes:
        """As `of`, from the shapes of the inputs with symbolic sizes, in order."""
        shapes = tuple(given)
        if (found := self._known.get(shapes)) is None:
            values = symbol_values(self._sized, dict(zip((name for name, _ in self._sized), shapes, strict=True)))
            numbers = tuple(values.get(symbol.name, symbol.most) for symbol in self._symbols)
            output_shapes = {binding.name: OutputShape.of(binding, values) for binding in self._outputs}
            found = CallSizes(values, numbers, output_shapes, all(symbol.name in values for symbol in self._symbols))
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            self._known[shapes] = found
        return found

    def output_shapes(self, numbers: Sequence[int]) -> dict[str, OutputShape]:
        """The shapes of outputs for these values of symbols."""
        values = {symbol.name: int(number) for symbol, number in zip(self._symbols, numbers, strict=True)}
        return {binding.name: OutputShape.of(binding, values) for binding in self._outputs}


def shape_of(binding: Binding, values: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a binding for these values of symbols; axes of unknown symbols have their maximum."""
    return tuple(
        size if isinstance(size, int) else size.at(values) if is_known(size, values) else largest
        for size, largest in zip(binding.declared, binding.shape, strict=True)
    )


def is_known(size: SymbolicSize, values: Mapping[str, int]) -> bool:
    """Whether all symbols in a size have values."""
    return all(symbol.name in values for symbol in size.symbols)


def is_laid_out(array: np.ndarray, binding: Binding) -> bool:
    """Whether the elements of an array have the layout that machine code expects."""
    if not array.flags.aligned:
        return False
    stride = array.itemsize
    for size, given, largest in zip(array.shape[::-1], array.strides[::-1], binding.shape[::-1], strict=True):
        if size > 1 and given != stride:
            return False
        stride *= largest
    return True


def is_dense(shape: Sequence[int], binding: Binding) -> bool:
    """Whether a C-contiguous array of a shape has the layout that machine code expects."""
    # Strides count axes from the last one on, and an axis of one element needs no stride.
    lengths = accumulate(shape[:0:-1], mul, initial=1)
    laid_out = accumulate(binding.shape[:0:-1], mul, initial=1)
    return 0 in shape or all(
        size == 1 or one == two for size, one, two in zip(shape[::-1], lengths, laid_out, strict=False)
    )


class Growing:
    """
    Arrays with unused room at the end, and the shapes in use.

    Several threads may use it: while a call writes to an array, it has no record, and others do not find it.
    """

    def __init__(self) -> None:
        self._used: dict[int, tuple[int, ...]] = {}

    def made(self, binding: Binding) -> np.ndarray:
        """A new array for an output, without a record; raises `OutOfMemoryError`."""
        whole = made(binding, binding.shape)
        weakref.finalize(whole, self._used.pop, id(whole), None).atexit = False
        return whole

    def record(self, part: np.ndarray) -> None:
        """Record that `part`, a view of an array that `made` or `taken` gave, is the part in use."""
        self._used[id(part.base)] = part.shape

    def taken(self, part: np.ndarray, binding: Binding) -> np.ndarray | None:
        """The array of which `part` is the part in use, without its record; `None` if there is none."""
        whole: object = part.base
        if not isinstance(whole, np.ndarray) or whole.shape != binding.shape or whole.strides != part.strides:
            return None
        used = self._used.pop(id(whole), None)
        if used is None:
            return None
        if used == part.shape and part.dtype == whole.dtype and part.ctypes.data == whole.ctypes.data:
            return whole
        self._used[id(whole)] = used
        return None


_GROWING = Growing()


class Buffers:
    """Buffers of the largest shapes, one set for each thread, reused by calls."""

    def __init__(self) -> None:
        self._local = threading.local()

    def input(self, binding: Binding, array: np.ndarray) -> np.ndarray:
        """An input in the layout of machine code: the array itself, or a copy in a buffer."""
        if is_laid_out(array, binding):
            return array
        part = self.kept(binding)[_part(array.shape)]
        part[...] = array
        return part

    def output(
        self, binding: Binding, output_shape: OutputShape, inputs: Mapping[str, np.ndarray], shares: bool = True
    ) -> np.ndarray:
        """
        Memory for an output: a new array, or a part of a buffer if the layout is for a much larger one.

        An output that extends one of the `inputs` uses the array that the input is part of, if the input is all that is
        in use of it and the call `shares` memory. `result` extracts the value to return, and `grown` lets a later call
        extend it.
        """
        if binding.extends:
            whole = _GROWING.taken(inputs[binding.extends], binding) if shares else None
            return (_GROWING.made(binding) if whole is None else whole)[output_shape.part]
        if output_shape.is_dense:
            return made(binding, output_shape.shape)
        if not output_shape.is_large:
            return made(binding, binding.shape)[output_shape.part]
        return self.kept(binding)[output_shape.part]

    def kept(self, binding: Binding) -> np.ndarray:
        """The buffer of this thread for a binding, of the largest shape; raises `OutOfMemoryError`."""
        kept: dict[str, np.ndarray] = self._local.__dict__
        if binding.name not in kept:
            kept[binding.name] = made(binding, binding.shape)
        return kept[binding.name]


def result(binding: Binding, buffer: np.ndarray, output_shape: OutputShape) -> np.ndarray:
    """
    The output that machine code has written to a buffer of `Buffers.output`, when all symbols are known.

    It is a copy if the buffer is reused, or much larger.
    """
    if buffer.shape == output_shape.shape and output_shape.is_dense:
        return buffer
    part = buffer[output_shape.part]
    return np.array(part, order="C") if output_shape.is_large and not binding.extends else part


def grown(binding: Binding, part: np.ndarray) -> None:
    """Let a later call extend an output that this one has written to the memory of `Buffers.output`."""
    if binding.extends:
        _GROWING.record(part)


def unshared(binding: Binding, buffer: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """The memory of `Buffers.output` for an output, or new memory in place of that of the input that it extends."""
    given = inputs.get(binding.extends)
    if given is None or given.ctypes.data != buffer.ctypes.data:
        return buffer
    _GROWING.record(given)
    return _GROWING.made(binding)[_part(buffer.shape)]


def made(binding: Binding, shape: tuple[int, ...]) -> np.ndarray:
    """A new array for a binding; raises `OutOfMemoryError`."""
    try:
        return new_array(shape, binding.numpy_dtype)
    except MemoryError as error:
        words = f"{binding.dtype}[{', '.join(map(str, shape))}]"
        reason = f"there is too little memory for {binding.role} '{binding.name}', which is {words}"
        raise OutOfMemoryError(reason, hint="give the model smaller inputs") from error


def _part(shape: Sequence[int]) -> Part:
    """The first elements along each axis."""
    return (*map(slice, shape), ...)  # The ellipsis keeps a single element an array.
