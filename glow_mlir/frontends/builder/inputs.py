"""Inputs of a model: sizes of their free dimensions, and given values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.errors import OptionError
from glow_mlir.runtime.signature import Argument, missing_sizes, rank_label
from glow_mlir.support.arguments import plain_numbers, whole_number
from glow_mlir.support.symbols import Dimension, GivenDimension, Size, Sizes, Symbol, SymbolicSize, size_from_label

CAPACITY = ".trips"
"""The suffix of labels of loops' trip capacities, after the name of a result."""


def input_shapes(
    sizes: Mapping[str, Sequence[int | str] | None], dimensions: Mapping[str, GivenDimension], ranks: Collection[str]
) -> dict[str, Sizes]:
    """
    The shapes of inputs; in `sizes`, free dimensions are labels.

    `dimensions` has sizes of free dimensions, bounds of symbols, or expressions of others. A label can itself be an
    expression of other labels, such as `past + tokens`. Raises `UnsupportedError` that lists all missing sizes, and
    errors like `check_dimensions`.
    """
    free = check_dimensions(sizes, dimensions, ranks)
    own, given = _expressions(dimensions)
    chosen = symbolic_sizes({label: size for label, size in own.items() if label in free})
    derived = {label: size_from_label(given.get(label, label), chosen) for label in free if label not in own}
    if missing := [label for label, size in derived.items() if size is None and label not in given]:
        raise missing_sizes({label: free[label] for label in missing})
    for label, size in derived.items():
        if isinstance(size, int) and size < 0:
            hint = "give sizes of other dimensions for which it is 0 or more"
            raise OptionError(f"dimension '{label}' is {given.get(label, label)}, which is {size}", hint=hint)
    known = {**chosen, **{label: size for label, size in derived.items() if size is not None}}
    return {
        name: tuple(known[size] if isinstance(size, str) else size for size in own or ()) for name, own in sizes.items()
    }


def check_dimensions(
    sizes: Mapping[str, Sequence[int | str] | None], dimensions: Mapping[str, GivenDimension], ranks: Collection[str]
) -> dict[str, str]:
    """
    Free dimension → the first input that has it, for inputs with these sizes by name.

    Undeclared `ranks` are among them if `dimensions` do not have them either. Raises `OptionError` for unknown labels
    or invalid sizes in `dimensions`.
    """
    free: dict[str, str] = {}
    for name, own in sizes.items():
        for size in (rank_label(name),) if own is None else own:
            if isinstance(size, str):
                free.setdefault(size, name)
    named = {*free, *ranks}
    if surplus := [label for label in dimensions if label not in named and not label.endswith(CAPACITY)]:
        known = ", ".join(f"'{label}'" for label in free) or "none"
        hint = f"free dimensions: {known}"
        if any(f"{name}.{axis}" in free for name, own in sizes.items() for axis in range(len(own or ()))):
            hint = f"{hint}; one without a name of its own goes by input and axis"
        raise OptionError(f"the model has no free dimension '{surplus[0]}'", hint=hint)
    own, expressions = _expressions(dimensions)
    _check_expressions(expressions, [label for label in free if label not in expressions])
    for label, size in own.items():
        _check_bounds(label, size)
    return free


def _check_expressions(expressions: Mapping[str, str], others: Collection[str]) -> None:
    """Raise `OptionError` for a dimension whose text is no expression of others."""
    ones = dict.fromkeys(others, 1)
    for label, text in expressions.items():
        if size_from_label(text, ones) is None or size_from_label(text, {}) is not None:
            hint = "a number, two, (least, most), or an expression of other dimensions: 'past + 1'"
            raise OptionError(f"dimension '{label}' cannot be '{text}' long", hint=hint)


def _check_bounds(label: str, size: Dimension) -> None:
    """Raise `OptionError` for the size of a dimension that is none, or for bounds in the wrong order."""
    bounds = size if isinstance(size, tuple) else (size, size)
    if len(bounds) == 2 and bounds[1] is None:
        bounds = (bounds[0], bounds[0])
    numbers = [number for number in map(whole_number, bounds) if number is not None]
    if len(bounds) != 2 or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1]:
        raise OptionError(f"dimension '{label}' cannot be {size!r} long", hint="a number, or two: (least, most)")


def _expressions(dimensions: Mapping[str, GivenDimension]) -> tuple[dict[str, Dimension], dict[str, str]]:
    """Separate sizes and bounds of dimensions from expressions."""
    own = {label: size for label, size in dimensions.items() if not isinstance(size, str)}
    return own, {label: size for label, size in dimensions.items() if isinstance(size, str)}


def without_trip_capacities(
    dimensions: Mapping[str, GivenDimension], known: Collection[str]
) -> tuple[dict[str, GivenDimension], dict[str, int]]:
    """
    Separate dimensions of inputs from trip capacities of loops; labels that are `known` are dimensions.

    Raises `OptionError` for an invalid trip capacity.
    """
    own = {label: size for label, size in dimensions.items() if label in known or not label.endswith(CAPACITY)}
    trip_capacities: dict[str, int] = {}
    for label in dimensions.keys() - own.keys():
        given: GivenDimension = plain_numbers(dimensions[label])
        most = given[1] if isinstance(given, tuple) else given
        if not isinstance(most, int) or most < 1:
            raise OptionError(f"invalid trip capacity {given!r} of '{label}'", hint="a number from 1 on")
        trip_capacities[label] = most
    return own, trip_capacities


def symbolic_sizes(dimensions: Mapping[str, Dimension]) -> dict[str, Size]:
    """Free dimension → its size: a number, or a symbol for bounds, with a name that is valid in IR."""
    found: dict[str, Size] = {}
    taken: set[str] = set()
    for label, derived in dimensions.items():
        given: Dimension = plain_numbers(derived)
        if not isinstance(given, tuple):
            found[label] = given
            continue
        least, most = given
        if most is None:
            raise OptionError(f"dimension '{label}' has no largest size", hint=f"give it one: ({least}, MOST)")
        symbol = Symbol(symbol_name(label, taken), least, most)
        found[label] = least if least == most else SymbolicSize.of(symbol)
    return found


def symbol_name(label: str, taken: set[str]) -> str:
    """A valid, unique name for a symbol with a label; it is added to `taken`."""
    name = re.sub(r"[\x00-\x1f\x7f]", "_", label)
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def check_values(types: Mapping[str, TensorType[Attribute]], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    The values of inputs, converted to the inputs' types if that does not change them.

    Raises `OptionError` for an unknown input, a wrong shape, or values that the input's type cannot represent.
    """
    for name in values:
        if name not in types:
            raise OptionError(f"the model has no input '{name}'", hint=f"inputs are {', '.join(types) or 'none'}")
    return {
        name: Argument(name, numpy_dtype(types[name].element_type).name, shape_of(types[name])).converted(value)
        for name, value in values.items()
    }
