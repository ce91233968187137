"""Convert element types and shapes of ONNX values to ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count

import onnx
from onnx import helper
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.shapes import MAX_AXES, element_of, sizes_of, tensor
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.frontends.builder.inputs import input_shapes
from glow_mlir.runtime.signature import rank_label
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.identity import kept_by_identity
from glow_mlir.support.symbols import GivenDimension, labels_of


def element_of_onnx(kind: int, what: str) -> Attribute:
    """The element type for an ONNX data type; raises `UnsupportedError` about `what` if there is none."""
    name, numpy_name = names_of_element(kind)
    if numpy_name not in ELEMENT_TYPES:
        raise UnsupportedError(f"{what} has the element type {name}, which is not supported")
    return ELEMENT_TYPES[numpy_name]


@cache
def names_of_element(kind: int) -> tuple[str, str]:
    """The name of an ONNX data type, and of its numpy dtype, empty if it has none."""
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    # The numpy dtype of strings, `object`, would not help the user.
    name = names.get(kind, f"number {kind}").lower()
    unknown = name == "string" or kind not in names or not kind
    return name, "" if unknown else helper.tensor_dtype_to_np_dtype(kind).name


def onnx_kind(value: SSAValue) -> int:
    """The ONNX data type of the elements of a value."""
    return _kind_of(element_of(value))


@kept_by_identity
def _kind_of(element: Attribute) -> int:
    return helper.np_dtype_to_tensor_dtype(numpy_dtype(element))


def onnx_type(value: SSAValue | None) -> onnx.TypeProto:
    """The ONNX type of a value; empty for an absent one."""
    if value is None:
        return onnx.TypeProto()
    return helper.make_tensor_type_proto(onnx_kind(value), labels_of(sizes_of(value)))


def tensor_type(kind: int) -> onnx.TypeProto:
    """The type of tensors of an ONNX data type, without a shape."""
    return helper.make_tensor_type_proto(kind, None)


def input_sizes(value: onnx.ValueInfoProto, dimensions: Mapping[str, GivenDimension]) -> tuple[int | str, ...] | None:
    """
    The sizes of a graph's input; free dimensions are labels.

    The label of a free dimension is its name, or else input and axis, as in `x.0`. The rank of an input without a
    declared rank is `x.rank` of `dimensions`, or the number of axes to which they give sizes; the result is `None` if
    they give neither. Raises `UnsupportedError` if the input is not a tensor.
    """
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        actual = "has no type" if kind is None else f"is not a tensor: {kind.removesuffix('_type')}"
        raise UnsupportedError(f"input '{value.name}' {actual}")
    input_element(value)
    return open_sizes(value, dimensions)


def input_element(value: onnx.ValueInfoProto) -> Attribute:
    """The element type of a tensor input, i64 for strings; raises `UnsupportedError` for an unsupported type."""
    kind = value.type.tensor_type.elem_type
    return i64 if kind == onnx.TensorProto.STRING else element_of_onnx(kind, f"input '{value.name}'")


def open_sizes(value: onnx.ValueInfoProto, dimensions: Mapping[str, GivenDimension]) -> tuple[int | str, ...] | None:
    """`input_sizes` for a tensor."""
    if value.type.tensor_type.HasField("shape"):
        return tuple(declared_sizes(value))
    return _ranked_sizes(value.name, dimensions)


def _ranked_sizes(name: str, dimensions: Mapping[str, GivenDimension]) -> tuple[str, ...] | None:
    """The free dimensions of an input without a declared rank; raises `OptionError` for an invalid rank."""
    given = dimensions.get(rank_label(name))
    rank = whole_number(given) if given is not None else next(n for n in count() if f"{name}.{n}" not in dimensions)
    if rank is None or not 0 <= rank <= MAX_AXES:
        raise OptionError(f"input '{name}' cannot have {given!r} axes", hint=f"a number from 0 to {MAX_AXES}")
    return None if given is None and not rank else tuple(f"{name}.{axis}" for axis in range(rank))


def negative_extents(value: onnx.ValueInfoProto) -> list[int]:
    """The negative extents that a model declares for a tensor."""
    extents = (size.dim_value for size in value.type.tensor_type.shape.dim if size.HasField("dim_value"))
    return [extent for extent in extents if extent < 0]


def declared_sizes(value: onnx.ValueInfoProto) -> list[int | str]:
    """
    The declared sizes of a tensor; free dimensions are labels as in `input_sizes`.

    Negative extents, and names that only mean "unknown", are free dimensions without a name.
    """
    return [
        dimension.dim_value
        if dimension.HasField("dim_value") and dimension.dim_value >= 0
        else f"{value.name}.{axis}"
        if says_unknown(dimension.dim_param)
        else dimension.dim_param
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim)
    ]


UNKNOWN_SIZES = frozenset({"-1", "any", "n/a", "nan", "nil", "none", "null", "undefined", "unk", "unknown"})
"""Names that exporters give to dimensions of unknown size, in lower case."""


def says_unknown(name: str) -> bool:
    """Whether the name of a dimension only means that its size is unknown: `None`, `?`, `*`, or an empty name."""
    return name.strip().lower() in UNKNOWN_SIZES or not name.strip("?* ")


def unknown_words(value: onnx.ValueInfoProto) -> tuple[str, ...]:
    """For each axis the name that only means "unknown", else an empty string; empty if there is no such name."""
    names = [dimension.dim_param for dimension in value.type.tensor_type.shape.dim]
    words = tuple(name if says_unknown(name) else "" for name in names)
    return words if any(words) else ()


def input_types(
    inputs: Iterable[onnx.ValueInfoProto], dimensions: Mapping[str, GivenDimension]
) -> dict[str, TensorType[Attribute]]:
    """
    The types of a graph's inputs; `dimensions` has sizes of free dimensions, or bounds of symbols.

    Raises errors like `input_sizes` and `input_shapes`.
    """
    given = list(inputs)
    sizes = {value.name: input_sizes(value, dimensions) for value in given}
    shapes = input_shapes(sizes, dimensions, open_ranks(given))
    return {value.name: tensor(shapes[value.name], input_element(value)) for value in given}


def open_ranks(values: Iterable[onnx.ValueInfoProto]) -> set[str]:
    """The labels of ranks that a model does not declare for its inputs."""
    return {rank_label(value.name) for value in values if not value.type.tensor_type.HasField("shape")}
