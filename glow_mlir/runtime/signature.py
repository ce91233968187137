"""What a model takes and gives: names, element types, and shapes with free dimensions in them."""

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
from glow_mlir.support.symbols import are_numbers, labels_of, size_from_label


@dataclass(frozen=True)
class Argument:
    """
    An input or output of a model.

    A free dimension goes by its name, or by input and axis where it has none, as in `x.0`. `dtype` is empty, and
    `shape` is `None`, where the model does not say it. What is no tensor has its `type` in ONNX's words, as
    `seq(tensor(float))`, and neither.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    type: str = ""
    unknown: tuple[str, ...] = ()
    """The words, axis by axis, with which the model says that it does not know a size; empty where it has none."""

    @staticmethod
    def of(binding: Binding) -> Argument:
        """The argument that a binding of an entry is."""
        return Argument(binding.name, binding.dtype, labels_of(binding.declared))

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of arrays for it; of what is no tensor, that of arrays of anything."""
        return named_dtype(STRING if self.type else self.dtype)

    @property
    def free(self) -> list[str]:
        """Its free dimensions."""
        return [size for size in self.shape or () if isinstance(size, str)]

    def sizes(self, shape: tuple[int, ...]) -> Iterable[tuple[str, int]]:
        """What its free dimensions are for an array of that shape, which it accepts; its rank where that is open."""
        if self.shape is None:
            labels = ((f"{self.name}.{axis}", actual) for axis, actual in enumerate(shape))
            return [(rank_label(self.name), len(shape)), *labels]
        return [(label, shape[axis]) for axis, label in self._free_axes]

    def converted(self, value: np.ndarray) -> np.ndarray:
        """
        A value of it: numbers of another type become what it has, where that changes none, and get its shape.

        Raises `OptionError` for numbers that it cannot have, or too many or few of them.
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
        """The sizes that are numbers: the whole shape of what is static."""
        return tuple(size for size in self.shape or () if not isinstance(size, str))

    @cached_property
    def is_static(self) -> bool:
        """Whether all sizes are numbers."""
        return self.shape is not None and are_numbers(self.shape)

    @property
    def named_shape(self) -> tuple[int | str | None, ...]:
        """The shape with the model's words, or `None`, for free dimensions that have no names of their own."""
        words = dict(enumerate(self.unknown))
        shape = enumerate(self.shape or ())
        return tuple((words.get(axis) or None) if size == f"{self.name}.{axis}" else size for axis, size in shape)

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether an array may have that shape, whatever its free dimensions are elsewhere."""
        if self.is_static:
            return shape == self.shape
        if self.shape is None:
            return True
        if len(self.shape) != len(shape):
            return False
        for axis, wanted in self._declared_sizes:  # Each call asks: a generator takes longer.
            if shape[axis] != wanted:
                return False
        return True

    @cached_property
    def _declared_sizes(self) -> list[tuple[int, int]]:
        """Axes whose sizes are numbers, and these."""
        return [(axis, size) for axis, size in enumerate(self.shape or ()) if not isinstance(size, str)]

    @cached_property
    def _free_axes(self) -> list[tuple[int, str]]:
        """Axes that are free, and what these dimensions are called."""
        return [(axis, size) for axis, size in enumerate(self.shape or ()) if isinstance(size, str)]

    def __str__(self) -> str:
        """Its type in words, as `float32[N, 3, 224, 224]`."""
        if self.type:
            return self.type
        element = "string" if self.dtype == STRING else self.dtype
        return f"{element}[{'...' if self.shape is None else ', '.join(map(str, self.shape))}]"


class Signed(Protocol):
    """What has inputs and outputs."""

    @property
    def inputs(self) -> Sequence[Argument]:
        """What it takes, in order."""
        ...

    @property
    def outputs(self) -> Sequence[Argument]:
        """What it gives, in order."""
        ...


def check_tensors(signed: Signed, where: str, hint: str, *, strings: bool) -> None:
    """Raise `OptionError` for an input or output that is no tensor, or one of strings unless they are allowed."""
    for role, arguments in (("input", signed.inputs), ("output", signed.outputs)):
        for argument in arguments:
            if argument.type or (argument.dtype == STRING and not strings):
                kind = "tensors" if strings else "tensors of numbers"
                raise OptionError(f"{role} '{argument.name}' is {argument}, and {where} takes {kind} alone", hint=hint)


def rank_label(name: str) -> str:
    """What the rank of an input is called whose model does not say it."""
    return f"{name}.rank"


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, in order."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, "tuple[int, int | None]"])
    """Free dimension → the least and the largest size for which the model is what it is."""

    def sizes(self, inputs: Mapping[str, Tensor]) -> dict[str, int]:
        """What free dimensions are in a call; see `sizes_in`. Raises `InputError` for sizes out of bounds as well."""
        found = sizes_in(self.inputs, inputs)
        for label, (least, most) in self.bounds.items():
            size = found.get(label, least)
            if size < least or (most is not None and size > most):
                hint = f"the model supports sizes from {least}" + ("" if most is None else f" to {most}")
                raise InputError(f"dimension '{label}' is {size} in input '{self.free[label]}'", hint=hint)
        return found

    @property
    def free(self) -> dict[str, str]:
        """The free dimensions of the inputs, and ranks that are open, each with the first input that has it."""
        found: dict[str, str] = {}
        for argument in self.inputs:
            for label in argument.free if argument.shape is not None else [rank_label(argument.name)]:
                found.setdefault(label, argument.name)
        return found

    def data(self) -> dict[str, Any]:
        """The signature as JSON has it."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Signature:
        """The signature that `data` gave; raises `KeyError` or `TypeError` for anything else."""
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
    """Free dimensions that have to have sizes; `example` gives one to the first of them."""

    example = ""


def missing_sizes(free: Mapping[str, str]) -> MissingSizeError:
    """The error for free dimensions that have to have sizes, each with an input that has it."""
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
    What free dimensions are in a call with those inputs, whose shapes the arguments accept.

    Raises `InputError` where inputs do not agree on one, or one is not what its label says of others (`2 * n`).
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
