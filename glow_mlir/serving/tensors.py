"""The wire format of a network's inputs and outputs: arrays from and to bytes and lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.charges import Charge
from glow_mlir.serving.contents import NUMBERS, Contents
from glow_mlir.serving.datatypes import STRINGS, datatype_of
from glow_mlir.serving.json_text import is_list
from glow_mlir.serving.models import Network
from glow_mlir.serving.packed_numbers import LONGEST
from glow_mlir.serving.steps import COPIED, Steps, are_finite
from glow_mlir.serving.strings import (
    LENGTH_BYTES,
    STRING_BYTES,
    STRING_KINDS,
    STRINGS_A_STEP,
    Bytes,
    decoded,
    encoded,
    packed,
    packed_parts,
    string_array,
    text,
    unpacked,
)
from glow_mlir.support.dtypes import STRING, is_float_dtype, name_of

NUMBER_TEXT = 64
"""The maximum bytes of a number in JSON, including separators."""

HEAD_TEXT = 1 << 16
"""The maximum bytes of a request besides the elements of its inputs."""

MAX_AXES = 64
"""The maximum number of axes of an array."""

MAX_ELEMENTS = (1 << 47) - 1
"""The maximum size of an axis, because processors cannot address more."""


class InputReader:
    """The decoder of an input of a network; each method raises `InputError` for values that do not fit it."""

    def __init__(self, argument: Argument) -> None:
        self.name = argument.name
        self.dtype = np.dtype(object) if argument.dtype == STRING else argument.numpy_dtype
        self.datatype = datatype_of(argument.dtype)
        self._argument = argument
        self._kinds = {int, float} if is_float_dtype(self.dtype) else {bool} if self.dtype.kind == "b" else {int}

    def checked(self, datatype: object, shape: Sequence[object]) -> tuple[int, ...]:
        """The sizes of a value with that type and shape, checked."""
        if datatype != self.datatype:
            self._refuse_datatype(datatype)
        sizes = self._sizes(shape)
        if not self._argument.accepts(sizes):
            raise InputError(f"input '{self.name}' must be {self._argument}, not of the shape {list(sizes)}")
        return sizes

    def of_bytes(self, shape: Sequence[int], data: Bytes, begin: int, size: int, charge: Charge) -> Steps[np.ndarray]:
        """A value from `size` bytes at `begin`, little endian and in C order, without a copy; `shape` is checked."""
        count = self.check_size(shape, size)
        if not count:
            return self._shaped(np.empty(0, self.dtype), shape)
        if begin + size > len(data):
            raise InputError(f"the request ends within input '{self.name}'")
        if self.dtype.kind != "b":
            return self._shaped(np.frombuffer(data, self.dtype, count, begin), shape)
        # Code for booleans accepts only 0 and 1.
        charge.add(count)
        given, found = np.frombuffer(data, np.uint8, count, begin), np.empty(count, np.bool_)
        for position in range(0, count, COPIED):
            if position:
                yield
            np.not_equal(given[position : position + COPIED], 0, out=found[position : position + COPIED])
        return self._shaped(found, shape)

    def check_size(self, shape: Sequence[int], size: int) -> int:
        """The number of elements of a value of this shape, checked against the number of bytes."""
        count = prod(shape)
        if size != count * self.dtype.itemsize:
            wanted = f"{count} elements of {self.datatype}"
            raise InputError(f"input '{self.name}' has {size} bytes, expected those of {wanted}")
        return count

    def of_list(self, shape: Sequence[int], data: object) -> np.ndarray:
        """A value of this shape, from a flat list of numbers in C order, or from nested lists."""
        if not is_list(data):
            raise InputError(f"the data of input '{self.name}' must be a list")
        return self.of_numbers(shape, self._flat(shape, data))

    def of_numbers(self, shape: Sequence[int], numbers: list[Any]) -> np.ndarray:
        """A value of this shape, from a flat list of numbers in C order."""
        if len(numbers) != prod(shape):
            raise InputError(f"input '{self.name}' has {len(numbers)} elements, but its shape is {list(shape)}")
        if not self._kinds.issuperset(map(type, numbers)):
            raise InputError(f"the data of input '{self.name}' must be numbers of type {self.datatype}")
        try:
            with np.errstate(over="ignore"):
                array = np.array(numbers, self.dtype)
        except (OverflowError, TypeError, ValueError):
            raise InputError(f"input '{self.name}' has a number out of the range of {self.datatype}") from None
        # JSON has only finite numbers, so infinities result from overflow.
        if self.dtype.kind not in "biu" and not np.isfinite(array).all():
            raise InputError(f"input '{self.name}' has a number out of the range of {self.datatype}")
        return self._shaped(array, shape)

    def of_decoded(self, shape: Sequence[int], array: np.ndarray, charge: Charge) -> Steps[np.ndarray]:
        """A value of this shape, from the result of `of_list` in another process."""
        yield from ()
        return self._shaped(array.view(self.dtype), shape)

    def of_contents(self, shape: Sequence[int], contents: Contents, charge: Charge) -> Steps[np.ndarray]:
        """A value of this shape, from the fields of a message."""
        if self.datatype not in NUMBERS:
            raise InputError(f"input '{self.name}' is {self.datatype}, which must be sent as bytes")
        count = prod(shape)
        most = sum(end - begin for begin, end in contents.parts)
        if count > most:
            raise InputError(f"input '{self.name}' has no {count} elements, which its shape {list(shape)} has")
        charge.add(count * self.dtype.itemsize)
        found, done = np.empty(count, self.dtype), 0
        for number, piece in enumerate(contents.numbers(NUMBERS[self.datatype], count)):
            if number:
                yield
            if done + len(piece) > count:
                done += len(piece)
                break
            self._place(found[done : done + len(piece)], piece)
            done += len(piece)
        if done != count:
            given = f"{done} elements or more" if done > count else f"{done} elements"
            raise InputError(f"input '{self.name}' has {given}, not as many as its shape {list(shape)}")
        return self._shaped(found, shape)

    def _place(self, target: np.ndarray, numbers: np.ndarray) -> None:
        """Copy numbers into an array of this input's type, if it can represent them; floats are not checked."""
        target[:] = numbers
        if self.dtype.kind in "biu" and not np.array_equal(target, numbers):
            raise InputError(f"input '{self.name}' has a number out of the range of {self.datatype}")

    def _flat(self, shape: Sequence[int], data: list[Any]) -> list[Any]:
        """The numbers of lists nested like the shape, or of one flat list."""
        if not data or type(data[0]) is not list:
            return data
        for size in shape[1:]:
            if not all(type(part) is list and len(part) == size for part in data):
                raise InputError(f"the data of input '{self.name}' are not nested like its shape {list(shape)}")
            data = list(chain.from_iterable(data))
        return data

    def _sizes(self, shape: Sequence[object]) -> tuple[int, ...]:
        """A shape as a tuple of sizes."""
        if len(shape) > MAX_AXES:
            raise InputError(f"input '{self.name}' has {len(shape)} axes, more than the {MAX_AXES} of an array")
        sizes: list[int] = []
        for size in shape:
            if type(size) is not int or not 0 <= size <= MAX_ELEMENTS:
                reason = f"the shape of input '{self.name}' must have sizes from 0 to {MAX_ELEMENTS}"
                raise InputError(reason)
            sizes.append(size)
        return tuple(sizes)

    def _shaped(self, array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """An array reshaped to its shape."""
        try:
            return array.reshape(shape)
        except (OverflowError, ValueError):  # Next to a size of 0, other sizes may be arbitrary.
            raise InputError(f"there is no array of the shape {list(shape)} of input '{self.name}'") from None

    def _refuse_datatype(self, datatype: object) -> None:
        """The error for a wrong element type."""
        if STRINGS in (datatype, self.datatype):
            given = repr(datatype) if isinstance(datatype, str) else "of no type"
            raise InputError(f"input '{self.name}' is {self.datatype}, not {given}: {STRINGS} stands for strings")
        given = repr(datatype) if isinstance(datatype, str) else "none"
        raise InputError(f"the datatype of input '{self.name}' must be '{self.datatype}', not {given}")


class StringReader(InputReader):
    """The decoder of an input of strings: strings in JSON, lists of bytes, or length-prefixed bytes."""

    def of_bytes(self, shape: Sequence[int], data: Bytes, begin: int, size: int, charge: Charge) -> Steps[np.ndarray]:
        """A value of strings in `size` bytes from `begin`, in C order; `shape` is checked."""
        count = self.check_size(shape, size)
        if begin + size > len(data):
            raise InputError(f"the request ends within input '{self.name}'")
        charge.add(size + count * STRING_BYTES)
        try:
            strings = yield from unpacked(memoryview(data)[begin : begin + size], count, charge)
        except ValueError as error:
            wanted = f"{count} length-prefixed UTF-8 strings"
            raise InputError(f"the bytes of input '{self.name}' are not {wanted}: {error}") from None
        return self._shaped(string_array(strings), shape)

    def check_size(self, shape: Sequence[int], size: int) -> int:
        """The number of strings of a shape, checked against the bytes of their lengths."""
        count = prod(shape)
        if size < count * LENGTH_BYTES:
            raise InputError(f"input '{self.name}' has {size} bytes, too few for {count} lengths")
        return count

    def of_numbers(self, shape: Sequence[int], numbers: list[Any]) -> np.ndarray:
        """A value of this shape, from a flat list of strings, or of UTF-8 bytes, in C order."""
        if len(numbers) != prod(shape):
            raise InputError(f"input '{self.name}' has {len(numbers)} elements, but its shape is {list(shape)}")
        if not {str, bytes}.issuperset(map(type, numbers)):
            raise InputError(f"the data of input '{self.name}' must be strings")
        try:
            strings = [item.decode() if isinstance(item, bytes) else item for item in numbers]
            "".join(strings).encode()
        except UnicodeError as error:
            raise InputError(f"the data of input '{self.name}' are not valid UTF-8: {error}") from None
        return self._shaped(string_array(strings), shape)

    def of_decoded(self, shape: Sequence[int], array: np.ndarray, charge: Charge) -> Steps[np.ndarray]:
        """A value of strings of this shape, from their bytes, each prefixed with its length."""
        return self.of_bytes(shape, array.data, 0, array.nbytes, charge)

    def of_contents(self, shape: Sequence[int], contents: Contents, charge: Charge) -> Steps[np.ndarray]:
        """A value of strings of this shape, from the fields of a message."""
        count, size = prod(shape), sum(end - begin for begin, end in contents.parts)
        if count * 2 > size:  # The bytes of field number and length.
            raise InputError(f"input '{self.name}' has no {count} elements, which its shape {list(shape)} has")
        charge.add(size + count * STRING_BYTES)
        strings: list[str] = []
        for data in contents.texts():
            if len(strings) >= count:
                break
            try:
                strings.append(text(data, charge))
            except UnicodeError as error:
                raise InputError(f"the data of input '{self.name}' are not valid UTF-8: {error}") from None
            if not len(strings) % STRINGS_A_STEP:
                yield
        else:
            if len(strings) == count:
                return self._shaped(string_array(strings), shape)
        raise InputError(f"input '{self.name}' has other than the {count} elements of its shape {list(shape)}")


def reader_of(argument: Argument) -> InputReader:
    """The decoder of an input; raises `UnsupportedError` for a type that the protocol lacks."""
    return StringReader(argument) if argument.dtype == STRING else InputReader(argument)


class NetworkTensors:
    """The inputs and outputs of a network by name; raises `UnsupportedError` for a type unknown to the protocol."""

    def __init__(self, network: Network) -> None:
        self.inputs = {argument.name: reader_of(argument) for argument in network.inputs}
        self.outputs = tuple(argument.name for argument in network.outputs)
        self._known_outputs = frozenset(self.outputs)
        elements = [_most_elements(argument, network.max_batch) for argument in network.inputs]
        is_bounded = None not in elements and STRING not in [argument.dtype for argument in network.inputs]
        counts = [count or 0 for count in elements]
        sizes = [count * item.dtype.itemsize for item, count in zip(self.inputs.values(), counts, strict=True)]
        self.most_bytes = sum(sizes) if is_bounded else None
        """The bytes of all inputs of the largest request; `None` if shapes or strings are unbounded."""
        self.most_text = sum(counts) * NUMBER_TEXT + HEAD_TEXT if is_bounded else None
        """The size of the largest request as JSON."""
        self.most_packed = sum(counts) * LONGEST + HEAD_TEXT if is_bounded else None
        """The size of the largest request as a message."""

    def reader(self, name: object) -> InputReader:
        """The reader of an input; raises `InputError` for an unknown name."""
        found = self.inputs.get(name) if isinstance(name, str) else None
        if found is None:
            raise InputError(f"there is no input {_quoted(name)}", hint=f"inputs are {', '.join(self.inputs)}")
        return found

    def check_complete(self, inputs: dict[str, np.ndarray]) -> None:
        """Raise `InputError` if an input is missing."""
        if len(inputs) != len(self.inputs):
            missing = ", ".join(f"'{name}'" for name in self.inputs if name not in inputs)
            raise InputError(f"the request has no input {missing}")

    def check_output(self, name: object) -> str:
        """The name of an output; raises `InputError` for an unknown one."""
        if not isinstance(name, str) or name not in self._known_outputs:
            raise InputError(f"there is no output {_quoted(name)}", hint=f"outputs are {', '.join(self.outputs)}")
        return name


def _most_elements(argument: Argument, rows: int) -> int | None:
    """The maximum number of elements of an input for this many rows; `None` if its shape has no bound."""
    if argument.shape is None:
        return None
    if rows and argument.shape and isinstance(argument.shape[0], str):
        return None if argument.free[1:] else rows * prod(argument.numbers)
    return None if argument.free else prod(argument.numbers)


def _quoted(name: object) -> str:
    return f"'{name}'" if isinstance(name, str) else "without a name"


_known: WeakKeyDictionary[Network, NetworkTensors] = WeakKeyDictionary()


def tensors_of(network: Network) -> NetworkTensors:
    """The inputs and outputs of a network; raises `UnsupportedError` for a type unknown to the protocol."""
    found = _known.get(network)
    if found is None:
        found = _known[network] = NetworkTensors(network)
    return found


def wire_datatype(array: np.ndarray) -> str:
    """The protocol's name of an output's element type."""
    return STRINGS if array.dtype.kind in STRING_KINDS else datatype_of(name_of(array.dtype))


def wire_bytes(array: np.ndarray) -> bytes:
    """The elements of an output in C order, little endian; strings are length-prefixed."""
    return packed(encoded(array)) if array.dtype.kind in STRING_KINDS else array.tobytes()


def is_short(array: np.ndarray) -> bool:
    """Whether the bytes of an output are copied in one step; strings are not."""
    return array.nbytes <= COPIED and array.dtype.kind not in STRING_KINDS


def wire_parts(array: np.ndarray, charge: Charge) -> Steps[Sequence[bytes | memoryview]]:
    """The elements of an output in C order, little endian, in parts, without a copy; strings are length-prefixed."""
    if array.dtype.kind in STRING_KINDS:
        texts = yield from string_parts(array, charge)
        return texts
    if is_short(array):
        charge.add(array.nbytes)
        return [array.tobytes()]
    charge.add(array.nbytes)
    data = memoryview((yield from contiguous(array, charge)).reshape(-1).view(np.uint8).data)
    return [data[begin : begin + COPIED] for begin in range(0, len(data), COPIED)]


def string_parts(array: np.ndarray, charge: Charge) -> Steps[list[bytes]]:
    """The strings of an output, length-prefixed, in parts."""
    charge.add(array.size * STRING_BYTES)
    parts = yield from packed_parts(array.reshape(-1).tolist())
    charge.add(sum(map(len, parts)))
    return parts


def contiguous(array: np.ndarray, charge: Charge) -> Steps[np.ndarray]:
    """An array in C order; other arrays are copied row by row."""
    if array.flags.c_contiguous or not array.ndim:
        return array
    charge.add(array.nbytes)
    found = np.empty(array.shape, array.dtype)
    rows = max(1, COPIED // max(1, array[:1].nbytes))
    for begin in range(0, len(array), rows):
        found[begin : begin + rows] = array[begin : begin + rows]
        yield
    return found


def wire_array(array: np.ndarray, charge: Charge) -> Steps[np.ndarray]:
    """The bytes of an output in shared memory; strings are length-prefixed."""
    if array.dtype.kind not in STRING_KINDS:
        return (yield from contiguous(array, charge))
    parts = yield from string_parts(array, charge)
    return np.frombuffer(b"".join(parts), np.uint8)


def flat_elements(array: np.ndarray) -> np.ndarray | list[Any]:
    """The elements of an output in C order: numbers as an array, strings or bytes as a list."""
    return array.reshape(-1).tolist() if array.dtype.kind in STRING_KINDS else array.reshape(-1)


def wire_numbers(name: str, array: np.ndarray) -> Steps[np.ndarray | list[str]]:
    """
    A flattened output, for JSON.

    Raises `InputError` for infinities, NaN, and byte strings that are not UTF-8, which JSON cannot represent.
    """
    if array.dtype.kind in STRING_KINDS:
        try:
            return (yield from decoded(array))
        except UnicodeDecodeError:
            hint = "request it as binary data"
            raise InputError(f"output '{name}' has strings that are not UTF-8, as JSON needs", hint=hint) from None
    return _json_numbers(name, array, array.dtype.kind in "biu" or (yield from are_finite(array.reshape(-1))))


def short_numbers(name: str, array: np.ndarray) -> np.ndarray:
    """A flattened output for JSON, all at once, if `is_short`; raises as `wire_numbers`."""
    return _json_numbers(name, array, array.dtype.kind in "biu" or bool(np.isfinite(array).all()))


def _json_numbers(name: str, array: np.ndarray, is_finite: bool) -> np.ndarray:
    """Flattened numbers for JSON; raises `InputError` if they are not finite."""
    if not is_finite:
        raise InputError(
            f"output '{name}' has infinities or NaN, which JSON cannot represent", hint="request it as binary data"
        )
    if array.dtype.kind not in "biu" and array.itemsize == 2:
        array = array.astype(np.float32)
    return np.ascontiguousarray(array).reshape(-1)
