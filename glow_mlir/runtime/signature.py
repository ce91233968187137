"""The signature of a model: names, element types, and shapes with free dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from glow_mlir.errors import InputError, OptionError, UnsupportedError
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.device_array import Tensor
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import STRING, named_dtype
from glow_mlir.support.symbols import GivenDimension, are_numbers, labels_of, size_from_label


@dataclass(frozen=True)
class Argument:
    """
    An input or output of a model.

    A free dimension is identified by its name, or by input and axis if it is unnamed, such as `x.0`. If the model does
    not specify them, `dtype` is empty and `shape` is `None`. A value that is not a tensor has neither, but its `type`
    in ONNX's terms, such as `seq(tensor(float))`.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    type: str = ""
    unknown: tuple[str, ...] = ()
    """For each axis, the model's text for an unknown size; empty if it has none."""

    @staticmethod
    def of(binding: Binding) -> Argument:
        """The argument for a binding of an entry."""
        return Argument(binding.name, binding.dtype, labels_of(binding.declared))

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of its arrays; `object` if it is not a tensor."""
        return named_dtype(STRING if self.type else self.dtype)

    def sized(self, dimensions: Mapping[str, GivenDimension]) -> Argument:
        """The argument with the dimensions that are given as sizes, and not as bounds; it must have a shape."""
        fixed = {label: size for label, size in dimensions.items() if isinstance(size, int)}
        assert self.shape is not None
        sizes = ((own, own if isinstance(own, int) else size_from_label(own, fixed)) for own in self.shape)
        return Argument(self.name, self.dtype, tuple(size if isinstance(size, int) else own for own, size in sizes))

    @property
    def free(self) -> list[str]:
        """Its free dimensions."""
        return [size for size in self.shape or () if isinstance(size, str)]

    def sizes(self, shape: tuple[int, ...]) -> Iterable[tuple[str, int]]:
        """The values of its free dimensions for an array of an accepted shape, and its rank if that is free."""
        if self.shape is None:
            labels = ((f"{self.name}.{axis}", actual) for axis, actual in enumerate(shape))
            return [(rank_label(self.name), len(shape)), *labels]
        return [(label, shape[axis]) for axis, label in self._free_axes]

    def converted(self, value: np.ndarray) -> np.ndarray:
        """
        Convert numbers to a value of this argument: to its dtype, if that changes no number, and to its shape.

        Raises `OptionError` for numbers that it cannot hold, or a wrong count.
        """
        with np.errstate(all="ignore"):
            array = value.astype(self.numpy_dtype)
            is_same = value.dtype == array.dtype or np.array_equal(array.astype(value.dtype), value)
        if self.is_static and self.shape is not None and math.prod(self.numbers) == value.size:
            array = array.reshape(self.numbers)
        if not is_same or not self.accepts(array.shape):
            given = f"{value.dtype.name}{list(value.shape)}"
            raise OptionError(f"the value of input '{self.name}' must be {self}, got {given}")
        return array

    @property
    def numbers(self) -> tuple[int, ...]:
        """The sizes that are numbers; the whole shape if it is static."""
        return tuple(size for size in self.shape or () if not isinstance(size, str))

    @cached_property
    def is_static(self) -> bool:
        """Whether all sizes are numbers."""
        return self.shape is not None and are_numbers(self.shape)

    @property
    def named_shape(self) -> tuple[int | str | None, ...]:
        """The shape with the model's text, or `None`, for unnamed free dimensions."""
        words = dict(enumerate(self.unknown))
        shape = enumerate(self.shape or ())
        return tuple((words.get(axis) or None) if size == f"{self.name}.{axis}" else size for axis, size in shape)

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether an array may have that shape, regardless of other arguments."""
        if self.is_static:
            return shape == self.shape
        if self.shape is None:
            return True
        if len(self.shape) != len(shape):
            return False
        for axis, wanted in self._declared_sizes:  # Runs in each call: faster than a generator.
            if shape[axis] != wanted:
                return False
        return True

    @cached_property
    def _declared_sizes(self) -> list[tuple[int, int]]:
        """Axes with fixed sizes, and the sizes."""
        return [(axis, size) for axis, size in enumerate(self.shape or ()) if not isinstance(size, str)]

    @cached_property
    def _free_axes(self) -> list[tuple[int, str]]:
        """Free axes with their labels."""
        return [(axis, size) for axis, size in enumerate(self.shape or ()) if isinstance(size, str)]

    def __str__(self) -> str:
        """Its type as text, such as `float32[N, 3, 224, 224]`."""
        if self.type:
            return self.type
        element = "string" if self.dtype == STRING else self.dtype
        return f"{element}[{'...' if self.shape is None else ', '.join(map(str, self.shape))}]"


class Signed(Protocol):
    """An object with inputs and outputs."""

    @property
    def inputs(self) -> Sequence[Argument]:
        """The inputs, in order."""
        ...

    @property
    def outputs(self) -> Sequence[Argument]:
        """The outputs, in order."""
        ...


def check_tensors(signed: Signed, where: str, hint: str, *, strings: bool) -> None:
    """Raise `OptionError` for an input or output that is not a tensor, or a tensor of strings unless allowed."""
    for role, arguments in (("input", signed.inputs), ("output", signed.outputs)):
        for argument in arguments:
            if argument.type or (argument.dtype == STRING and not strings):
                kind = "tensors" if strings else "tensors of numbers"
                raise OptionError(f"{role} '{argument.name}' is {argument}, and {where} takes {kind} alone", hint=hint)


def rank_label(name: str) -> str:
    """The label for the rank of an input of unknown rank."""
    return f"{name}.rank"


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, in order."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, "tuple[int, int | None]"])
    """Free dimension → the bounds of its size that the model supports."""

    def sizes(self, inputs: Mapping[str, Tensor]) -> dict[str, int]:
        """The sizes of free dimensions in a call, see `sizes_in`. Also raises `InputError` for sizes out of bounds."""
        found = sizes_in(self.inputs, inputs)
        for label, (least, most) in self.bounds.items():
            size = found.get(label, least)
            if size < least or (most is not None and size > most):
                hint = f"the model supports sizes from {least}" + ("" if most is None else f" to {most}")
                raise InputError(f"dimension '{label}' is {size} in input '{self.free[label]}'", hint=hint)
        return found

    @property
    def free(self) -> dict[str, str]:
        """The free dimensions and free ranks of the inputs, each with the first input that has it."""
        found: dict[str, str] = {}
        for argument in self.inputs:
            for label in argument.free if argument.shape is not None else [rank_label(argument.name)]:
                found.setdefault(label, argument.name)
        return found

    def data(self) -> dict[str, Any]:
        """The signature as JSON data."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Signature:
        """The signature from `data`; raises `KeyError` or `TypeError` for anything else."""
        bounds = {label: (least, most) for label, (least, most) in data.get("bounds", {}).items()}
        return Signature(_arguments(data["inputs"]), _arguments(data["outputs"]), bounds)


def _arguments(items: Iterable[Mapping[str, Any]]) -> tuple[Argument, ...]:
    return tuple(
        Argument(
            item["name"],
            item["dtype"],
            None if item["shape"] is None else tuple(item["shape"]),
            item["type"],
            tuple(item.get("unknown", ())),
        )
        for item in items
    )


class MissingSizeError(UnsupportedError):
    """Free dimensions that need sizes; `example` binds the first of them."""

    example = ""


def missing_sizes(free: Mapping[str, str]) -> MissingSizeError:
    """The error for free dimensions that need sizes, each with an input that has it."""
    listed = ", ".join(f"'{label}' of input '{name}'" for label, name in free.items())
    plural = "dimensions have" if len(free) > 1 else "dimension has"
    label, name = next(iter(free.items()))
    example = f"{label}=1"
    hint = f"bind it, for example {example}"
    if label == rank_label(name):
        example = f"{name}.0=1"
        hint = f"bind it, or the sizes of all axes, for example {example} and {name}.1=3"
    error = MissingSizeError(f"{len(free)} {plural} no size: {listed}", hint=hint)
    error.example = example
    return error


def sizes_in(arguments: Iterable[Argument], inputs: Mapping[str, Tensor]) -> dict[str, int]:
    """
    The sizes of free dimensions in a call; the arguments accept the shapes of the inputs.

    Raises `InputError` if inputs disagree on a dimension, or if its label is an expression of others (`2 * n`) with
    another value.
    """
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    for argument in arguments:
        if argument.is_static:
            continue
        for label, actual in argument.sizes(inputs[argument.name].shape):
            if sizes.setdefault(label, actual) != actual:
                reason = f"dimension '{label}' is {actual} in input '{argument.name}', and {sizes[label]} in input"
                raise InputError(f"{reason} '{owners[label]}'", hint="each dimension has one size per call")
            owners.setdefault(label, argument.name)
    for label, actual in sizes.items():
        expected = actual if label.isidentifier() else size_from_label(label, sizes)
        if isinstance(expected, int) and expected != actual:
            reason = f"dimension '{label}' is {actual} in input '{owners[label]}', and {expected} by the other sizes"
            raise InputError(reason, hint="each dimension has one size per call")
    return sizes
