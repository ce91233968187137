"""Element types and shapes of ONNX values as ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import count

import numpy as np
import onnx
from onnx import helper
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.shapes import MOST_AXES, element_of, shape_of, sizes_of, tensor
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.runtime.signature import Argument, missing_sizes, rank_label
from glow_mlir.support.arguments import plain_numbers, whole_number
from glow_mlir.support.symbols import Dimension, Size, Symbol, SymbolicSize, told_by


def element_of_onnx(kind: int, what: str) -> Attribute:
    """The element type for an ONNX data type; raises `UnsupportedError` about `what` where there is none."""
    name, numpy_name = names_of_element(kind)
    if numpy_name not in ELEMENT_TYPES:
        raise UnsupportedError(f"{what} has the element type {name}, which is not supported")
    return ELEMENT_TYPES[numpy_name]


@cache
def names_of_element(kind: int) -> tuple[str, str]:
    """The name of an ONNX data type, and that of its numpy dtype, empty where it has none."""
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    # Strings have a numpy type as well, but one that says nothing to the user.
    name = names.get(kind, f"number {kind}").lower()
    unknown = name == "string" or kind not in names or not kind
    return name, "" if unknown else helper.tensor_dtype_to_np_dtype(kind).name


def onnx_type(value: SSAValue | None) -> onnx.TypeProto:
    """The ONNX type of a value; an absent one has none."""
    if value is None:
        return onnx.TypeProto()
    kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(element_of(value)))
    return helper.make_tensor_type_proto(
        kind, [size if isinstance(size, int) else str(size) for size in sizes_of(value)]
    )


def input_sizes(value: onnx.ValueInfoProto, dimensions: Mapping[str, Dimension]) -> tuple[int | str, ...] | None:
    """
    The sizes of a graph's input; free dimensions by their names.

    A free dimension goes by its name, or where it has none by input and axis, as in `x.0`. An input without a rank has
    that which `dimensions` say as `x.rank`, or as many axes as they give sizes; `None` where they say nothing of it.
    Raises `UnsupportedError` for what is no tensor.
    """
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        actual = "has no type" if kind is None else f"is no tensor: {kind.removesuffix('_type')}"
        raise UnsupportedError(f"input '{value.name}' {actual}")
    described = value.type.tensor_type
    element_of_onnx(described.elem_type, f"input '{value.name}'")
    return open_sizes(value, dimensions)


def open_sizes(value: onnx.ValueInfoProto, dimensions: Mapping[str, Dimension]) -> tuple[int | str, ...] | None:
    """`input_sizes` of what is a tensor."""
    if value.type.tensor_type.HasField("shape"):
        return tuple(declared_sizes(value))
    return _ranked_sizes(value.name, dimensions)


def _ranked_sizes(name: str, dimensions: Mapping[str, Dimension]) -> tuple[str, ...] | None:
    """The free dimensions of an input without a rank; raises `OptionError` for what is no rank."""
    given = dimensions.get(rank_label(name))
    rank = whole_number(given) if given is not None else next(n for n in count() if f"{name}.{n}" not in dimensions)
    if rank is None or not 0 <= rank <= MOST_AXES:
        raise OptionError(f"input '{name}' cannot have {given!r} axes", hint=f"a number from 0 to {MOST_AXES}")
    return None if given is None and not rank else tuple(f"{name}.{axis}" for axis in range(rank))


def negative_extents(value: onnx.ValueInfoProto) -> list[int]:
    """The extents below 0 that a model declares for a tensor."""
    extents = (size.dim_value for size in value.type.tensor_type.shape.dim if size.HasField("dim_value"))
    return [extent for extent in extents if extent < 0]


def declared_sizes(value: onnx.ValueInfoProto) -> list[int | str]:
    """The sizes that a model says a tensor has; free dimensions as in `input_sizes`, negative extents among them."""
    return [
        dimension.dim_value
        if dimension.HasField("dim_value") and dimension.dim_value >= 0
        else dimension.dim_param or f"{value.name}.{axis}"
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim)
    ]


def input_types(
    inputs: Iterable[onnx.ValueInfoProto], dimensions: Mapping[str, Dimension]
) -> dict[str, TensorType[Attribute]]:
    """
    The types of a graph's inputs; `dimensions` gives free dimensions their sizes, or bounds of symbols.

    Those whose labels say it have sums of products of others, as `past + tokens`.

    Raises `UnsupportedError` where sizes are missing, all at once, and what `input_sizes` and `check_dimensions` raise.
    """
    given = list(inputs)
    sizes = {value.name: input_sizes(value, dimensions) for value in given}
    free = check_dimensions(sizes, dimensions, open_ranks(given))
    chosen = symbolic_sizes({label: size for label, size in dimensions.items() if label in free})
    told = {label: told_by(label, chosen) for label in free if label not in dimensions}
    if missing := [label for label, size in told.items() if size is None]:
        raise missing_sizes({label: free[label] for label in missing})
    known = {**chosen, **{label: size for label, size in told.items() if size is not None}}
    return {
        value.name: tensor(
            [known[size] if isinstance(size, str) else size for size in sizes[value.name] or ()],
            element_of_onnx(value.type.tensor_type.elem_type, f"input '{value.name}'"),
        )
        for value in given
    }


def symbolic_sizes(dimensions: Mapping[str, Dimension]) -> dict[str, Size]:
    """Free dimension → its size: a number, or a symbol where there are bounds, with a name that IR can have."""
    found: dict[str, Size] = {}
    taken: set[str] = set()
    for label, told in dimensions.items():
        given: Dimension = plain_numbers(told)
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


def open_ranks(values: Iterable[onnx.ValueInfoProto]) -> set[str]:
    """What the ranks are called that a model does not say of its inputs."""
    return {rank_label(value.name) for value in values if not value.type.tensor_type.HasField("shape")}


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
    if surplus := [label for label in dimensions if label not in free and label not in ranks]:
        known = ", ".join(f"'{label}'" for label in free) or "none"
        raise OptionError(f"the model has no free dimension '{surplus[0]}'", hint=f"free dimensions: {known}")
    for label, size in dimensions.items():
        bounds = size if isinstance(size, tuple) else (size, size)
        if len(bounds) == 2 and bounds[1] is None:
            bounds = (bounds[0], bounds[0])
        numbers = [number for number in map(whole_number, bounds) if number is not None]
        if len(bounds) != 2 or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1]:
            raise OptionError(f"dimension '{label}' cannot be {size!r} long", hint="a number, or two: (least, most)")
    return free
