"""Inputs of a model: the sizes of their free dimensions, and values that are known."""

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
from glow_mlir.support.symbols import Dimension, Size, Sizes, Symbol, SymbolicSize, size_from_label

CAPACITY = ".trips"
"""How the names of loops' numbers of trips end, behind the name of a result."""


def input_shapes(
    sizes: Mapping[str, Sequence[int | str] | None], dimensions: Mapping[str, Dimension], ranks: Collection[str]
) -> dict[str, Sizes]:
    """
    The sizes of inputs, of which `sizes` has those of free dimensions by their names.

    `dimensions` gives these their sizes, or bounds of symbols; those whose labels say it are sums of products of
    others, as `past + tokens`. Raises `UnsupportedError` where sizes are missing, all at once, and what
    `check_dimensions` raises.
    """
    free = check_dimensions(sizes, dimensions, ranks)
    chosen = symbolic_sizes({label: size for label, size in dimensions.items() if label in free})
    derived = {label: size_from_label(label, chosen) for label in free if label not in dimensions}
    if missing := [label for label, size in derived.items() if size is None]:
        raise missing_sizes({label: free[label] for label in missing})
    known = {**chosen, **{label: size for label, size in derived.items() if size is not None}}
    return {
        name: tuple(known[size] if isinstance(size, str) else size for size in own or ()) for name, own in sizes.items()
    }


def check_dimensions(
    sizes: Mapping[str, Sequence[int | str] | None], dimensions: Mapping[str, Dimension], ranks: Collection[str]
) -> dict[str, str]:
    """
    The free dimensions of inputs with those sizes by name, each with the first input that has it.

    Of the `ranks` that a model does not say, those are among them that `dimensions` do not say either. Raises
    `OptionError` for `dimensions` that are none of them, or no sizes.
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
    for label, size in dimensions.items():
        bounds = size if isinstance(size, tuple) else (size, size)
        if len(bounds) == 2 and bounds[1] is None:
            bounds = (bounds[0], bounds[0])
        numbers = [number for number in map(whole_number, bounds) if number is not None]
        if len(bounds) != 2 or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1]:
            raise OptionError(f"dimension '{label}' cannot be {size!r} long", hint="a number, or two: (least, most)")
    return free


def without_trip_capacities(
    dimensions: Mapping[str, Dimension], known: Collection[str]
) -> tuple[dict[str, Dimension], dict[str, int]]:
    """
    Dimensions of inputs, those that are `known` among them, and for how many trips of loops there is to be room.

    Raises `OptionError` for what is no number of trips.
    """
    own = {label: size for label, size in dimensions.items() if label in known or not label.endswith(CAPACITY)}
    trip_capacities: dict[str, int] = {}
    for label in dimensions.keys() - own.keys():
        given: Dimension = plain_numbers(dimensions[label])
        most = given[1] if isinstance(given, tuple) else given
        if most is None or most < 1:
            raise OptionError(f"there is no room for {given!r} trips of '{label}'", hint="a number from 1 on")
        trip_capacities[label] = most
    return own, trip_capacities


def symbolic_sizes(dimensions: Mapping[str, Dimension]) -> dict[str, Size]:
    """Free dimension → its size: a number, or a symbol where there are bounds, with a name that IR can have."""
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
    """The name of a symbol that goes by a label outside, and is none of those that are `taken`, which get it."""
    name = re.sub(r"[\x00-\x1f\x7f]", "_", label)
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def check_values(types: Mapping[str, TensorType[Attribute]], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    The values of inputs with those types; numbers of another type become what the input has, where that changes none.

    Raises `OptionError` for what is no input, or does not have its shape, or numbers that it cannot have.
    """
    for name in values:
        if name not in types:
            raise OptionError(f"the model has no input '{name}'", hint=f"inputs are {', '.join(types) or 'none'}")
    return {
        name: Argument(name, numpy_dtype(types[name].element_type).name, shape_of(types[name])).converted(value)
        for name, value in values.items()
    }
