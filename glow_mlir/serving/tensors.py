"""What crosses the wire for inputs and outputs of a network: bytes and lists of numbers as arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.serving.datatypes import STRINGS, datatype_of
from glow_mlir.serving.json_text import is_list
from glow_mlir.serving.models import Network
from glow_mlir.serving.strings import (
    LENGTH_BYTES,
    STRING_KINDS,
    decoded,
    encoded,
    packed,
    string_array,
    unpacked,
)
from glow_mlir.support.dtypes import STRING, is_float_dtype, name_of

MOST_AXES = 64
"""The axes that an array may have."""

MOST_ELEMENTS = (1 << 47) - 1
"""The elements that an axis may have: no processor has an address for more."""

Bytes = bytes | bytearray | memoryview


class InputReader:
    """An input of a network, which reads its values; each method raises `InputError` for what does not fit it."""

    def __init__(self, argument: Argument) -> None:
        self.name = argument.name
        self.dtype = np.dtype(object) if argument.dtype == STRING else argument.numpy_dtype
        self.datatype = datatype_of(argument.dtype)
        self._argument = argument
        self._kinds = {int, float} if is_float_dtype(self.dtype) else {bool} if self.dtype.kind == "b" else {int}

    def checked(self, datatype: object, shape: Sequence[object]) -> tuple[int, ...]:
        """The sizes of a value of that type and shape."""
        if datatype != self.datatype:
            self._refuse_datatype(datatype)
        sizes = self._sizes(shape)
        if not self._argument.accepts(sizes):
            raise InputError(f"input '{self.name}' must be {self._argument}, not of the shape {list(sizes)}")
        return sizes

    def of_bytes(self, shape: Sequence[int], data: Bytes, begin: int, size: int) -> np.ndarray:
        """A value in `size` bytes from `begin`, little endian and in C order, without a copy; `shape` is checked."""
        count = self.check_size(shape, size)
        if not count:
            return self._shaped(np.empty(0, self.dtype), shape)
        if begin + size > len(data):
            raise InputError(f"the request ends within input '{self.name}'")
        if self.dtype.kind == "b":  # Code for a truth value knows 0 and 1 alone.
            return self._shaped(np.frombuffer(data, np.uint8, count, begin) != 0, shape)
        return self._shaped(np.frombuffer(data, self.dtype, count, begin), shape)

    def check_size(self, shape: Sequence[int], size: int) -> int:
        """How many elements a value of that shape has, which is to be so many bytes."""
        count = prod(shape)
        if size != count * self.dtype.itemsize:
            wanted = f"{count} elements of {self.datatype}"
            raise InputError(f"input '{self.name}' has {size} bytes, which is not what {wanted} take")
        return count

    def of_list(self, shape: Sequence[int], data: object) -> np.ndarray:
        """A value in a list of numbers, in C order, or in lists in lists of that shape, which is checked."""
        if not is_list(data):
            raise InputError(f"the data of input '{self.name}' is no list")
        return self.of_numbers(shape, self._flat(shape, data))

    def of_numbers(self, shape: Sequence[int], numbers: list[Any]) -> np.ndarray:
        """A value of that shape, which is checked, in a list of numbers, in C order."""
        if len(numbers) != prod(shape):
            raise InputError(f"input '{self.name}' has {len(numbers)} elements, not as many as its shape {list(shape)}")
        if not self._kinds.issuperset(map(type, numbers)):
            raise InputError(f"the data of input '{self.name}' are not all numbers of the type {self.datatype}")
        try:
            with np.errstate(over="ignore"):
                array = np.array(numbers, self.dtype)
        except (OverflowError, TypeError, ValueError):
            raise InputError(f"input '{self.name}' has a number that {self.datatype} does not") from None
        # JSON has finite numbers alone, and so has what comes of them.
        if self.dtype.kind not in "biu" and not np.isfinite(array).all():
            raise InputError(f"input '{self.name}' has a number that {self.datatype} does not")
        return self._shaped(array, shape)

    def _flat(self, shape: Sequence[int], data: list[Any]) -> list[Any]:
        """The numbers of lists in lists of that shape, or of one list of all of them."""
        if not data or type(data[0]) is not list:
            return data
        for size in shape[1:]:
            if not all(type(part) is list and len(part) == size for part in data):
                raise InputError(f"the data of input '{self.name}' are not nested as its shape {list(shape)}")
            data = list(chain.from_iterable(data))
        return data

    def _sizes(self, shape: Sequence[object]) -> tuple[int, ...]:
        """A shape as sizes."""
        if len(shape) > MOST_AXES:
            raise InputError(f"input '{self.name}' has {len(shape)} axes, more than the {MOST_AXES} of an array")
        sizes: list[int] = []
        for size in shape:
            if type(size) is not int or not 0 <= size <= MOST_ELEMENTS:
                reason = f"the shape of input '{self.name}' has a size that is no number from 0 to {MOST_ELEMENTS}"
                raise InputError(reason)
            sizes.append(size)
        return tuple(sizes)

    def _shaped(self, array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """An array in its shape."""
        try:
            return array.reshape(shape)
        except (OverflowError, ValueError):  # Sizes beside one of 0 may be of any size.
            raise InputError(f"there is no array of the shape {list(shape)} of input '{self.name}'") from None

    def _refuse_datatype(self, datatype: object) -> None:
        """Say what is wrong with an element type."""
        if STRINGS in (datatype, self.datatype):
            given = repr(datatype) if isinstance(datatype, str) else "of no type"
            raise InputError(f"input '{self.name}' is {self.datatype}, not {given}: {STRINGS} stands for strings")
        given = repr(datatype) if isinstance(datatype, str) else "none"
        raise InputError(f"the datatype of input '{self.name}' must be '{self.datatype}', not {given}")


class StringReader(InputReader):
    """An input of strings, which come as such in JSON, as lists of bytes, and each behind its length."""

    def of_bytes(self, shape: Sequence[int], data: Bytes, begin: int, size: int) -> np.ndarray:
        """A value of strings in `size` bytes from `begin`, in C order; `shape` is checked."""
        count = self.check_size(shape, size)
        if begin + size > len(data):
            raise InputError(f"the request ends within input '{self.name}'")
        try:
            strings = unpacked(memoryview(data)[begin : begin + size], count)
        except ValueError as error:
            wanted = f"{count} strings in UTF-8, each behind its length"
            raise InputError(f"the bytes of input '{self.name}' are not {wanted}: {error}") from None
        return self._shaped(string_array(strings), shape)

    def check_size(self, shape: Sequence[int], size: int) -> int:
        """How many strings a value of that shape has, whose lengths alone take no more than so many bytes."""
        count = prod(shape)
        if size < count * LENGTH_BYTES:
            raise InputError(f"input '{self.name}' has {size} bytes, which is less than {count} lengths take")
        return count

    def of_numbers(self, shape: Sequence[int], numbers: list[Any]) -> np.ndarray:
        """A value of that shape, which is checked, in a list of strings, or of bytes in UTF-8, in C order."""
        if len(numbers) != prod(shape):
            raise InputError(f"input '{self.name}' has {len(numbers)} elements, not as many as its shape {list(shape)}")
        if not {str, bytes}.issuperset(map(type, numbers)):
            raise InputError(f"the data of input '{self.name}' are not all strings")
        try:
            strings = [item.decode() if isinstance(item, bytes) else item for item in numbers]
            "".join(strings).encode()
        except UnicodeError as error:
            raise InputError(f"the data of input '{self.name}' are no UTF-8: {error}") from None
        return self._shaped(string_array(strings), shape)


def _reader(argument: Argument) -> InputReader:
    return StringReader(argument) if argument.dtype == STRING else InputReader(argument)


class NetworkTensors:
    """The inputs and outputs of a network as requests name them; raises `UnsupportedError` for a type without word."""

    def __init__(self, network: Network) -> None:
        self.inputs = {argument.name: _reader(argument) for argument in network.inputs}
        self.outputs = tuple(argument.name for argument in network.outputs)
        self._known_outputs = frozenset(self.outputs)

    def reader(self, name: object) -> InputReader:
        """The input of that name; raises `InputError` for an unknown one."""
        found = self.inputs.get(name) if isinstance(name, str) else None
        if found is None:
            raise InputError(f"there is no input {_quoted(name)}", hint=f"inputs are {', '.join(self.inputs)}")
        return found

    def check_complete(self, inputs: dict[str, np.ndarray]) -> None:
        """Raise `InputError` where an input is missing."""
        if len(inputs) != len(self.inputs):
            missing = ", ".join(f"'{name}'" for name in self.inputs if name not in inputs)
            raise InputError(f"the request has no input {missing}")

    def check_output(self, name: object) -> str:
        """The name of an output; raises `InputError` for an unknown one."""
        if not isinstance(name, str) or name not in self._known_outputs:
            raise InputError(f"there is no output {_quoted(name)}", hint=f"outputs are {', '.join(self.outputs)}")
        return name


def _quoted(name: object) -> str:
    return f"'{name}'" if isinstance(name, str) else "without a name"


_known: WeakKeyDictionary[Network, NetworkTensors] = WeakKeyDictionary()


def tensors_of(network: Network) -> NetworkTensors:
    """The inputs and outputs of a network; raises `UnsupportedError` for a type that the protocol has no word for."""
    found = _known.get(network)
    if found is None:
        found = _known[network] = NetworkTensors(network)
    return found


def wire_datatype(array: np.ndarray) -> str:
    """The protocol's word for the element type of an output."""
    return STRINGS if array.dtype.kind in STRING_KINDS else datatype_of(name_of(array.dtype))


def wire_bytes(array: np.ndarray) -> bytes:
    """The elements of an output in C order, little endian; strings behind their lengths."""
    return packed(encoded(array)) if array.dtype.kind in STRING_KINDS else array.tobytes()


def wire_array(array: np.ndarray) -> np.ndarray:
    """An output as it lies in memory that a client sees: strings as bytes, each behind its length."""
    return np.frombuffer(wire_bytes(array), np.uint8) if array.dtype.kind in STRING_KINDS else array


def wire_list(array: np.ndarray) -> list[Any]:
    """The elements of an output in C order, as lists of messages have them: strings in UTF-8."""
    return encoded(array) if array.dtype.kind in STRING_KINDS else array.reshape(-1).tolist()


def wire_numbers(name: str, array: np.ndarray) -> np.ndarray | list[str]:
    """
    An output in one axis as JSON writes it.

    Raises `InputError` for infinities, NaN, and strings of bytes that are no UTF-8, which JSON does not have.
    """
    if array.dtype.kind in STRING_KINDS:
        try:
            return decoded(array)
        except UnicodeDecodeError:
            hint = "ask for it as binary data"
            raise InputError(f"output '{name}' has strings that are no UTF-8, which JSON is", hint=hint) from None
    if array.dtype.kind not in "biu":
        if not np.isfinite(array).all():
            raise InputError(
                f"output '{name}' has infinities or NaN, which JSON does not", hint="ask for it as binary data"
            )
        if array.itemsize == 2:
            array = array.astype(np.float32)
    return np.ascontiguousarray(array).reshape(-1)
