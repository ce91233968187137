"""Element types and shapes of ONNX values as ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import onnx
from onnx import helper
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.shapes import element_of, shape_of, tensor
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.support.arguments import whole_number


def element_of_onnx(kind: int, what: str) -> Attribute:
    """The element type for an ONNX data type; raises `UnsupportedError` about `what` where there is none."""
    name, numpy_name = _names_of(kind)
    if numpy_name not in ELEMENT_TYPES:
        raise UnsupportedError(f"{what} has the element type {name}, which is not supported")
    return ELEMENT_TYPES[numpy_name]


@cache
def _names_of(kind: int) -> tuple[str, str]:
    """The name of an ONNX data type, and that of its numpy dtype, empty where it has none."""
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    # Strings and packed types have a numpy type as well, but one that says nothing to the user.
    name = names.get(kind, f"number {kind}").lower()
    unknown = name == "string" or kind not in names or not kind
    return name, "" if unknown else helper.tensor_dtype_to_np_dtype(kind).name


def onnx_type(value: SSAValue | None) -> onnx.TypeProto:
    """The ONNX type of a value; an absent one has none."""
    if value is None:
        return onnx.TypeProto()
    kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(element_of(value)))
    return helper.make_tensor_type_proto(kind, list(shape_of(value)))


def input_types(
    inputs: Iterable[onnx.ValueInfoProto], dimensions: Mapping[str, int]
) -> dict[str, TensorType[Attribute]]:
    """
    The types of a graph's inputs; `dimensions` gives free dimensions their sizes.

    A free dimension goes by its name, or where it has none by input and axis, as in `x.0`. Raises `UnsupportedError`
    where sizes are missing, all at once, and `OptionError` for sizes that nothing needs, or that are none.
    """
    types: dict[str, TensorType[Attribute]] = {}
    free: dict[str, str] = {}
    for value in inputs:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            actual = "has no type" if kind is None else f"is no tensor: {kind.removesuffix('_type')}"
            raise UnsupportedError(f"input '{value.name}' {actual}")
        described = value.type.tensor_type
        element = element_of_onnx(described.elem_type, f"input '{value.name}'")
        if not described.HasField("shape"):
            raise UnsupportedError(f"input '{value.name}' has no shape", hint="run onnx.shape_inference, or set one")
        sizes: list[int] = []
        for axis, dimension in enumerate(described.shape.dim):
            known = dimension.HasField("dim_value") and dimension.dim_value >= 0
            label = dimension.dim_param or f"{value.name}.{axis}"
            if not known:
                free.setdefault(label, value.name)
            sizes.append(dimension.dim_value if known else _size(dimensions, label))
        types[value.name] = tensor(sizes, element)
    _check_dimensions(free, dimensions)
    return types


def _check_dimensions(free: Mapping[str, str], dimensions: Mapping[str, int]) -> None:
    if missing := [label for label in free if label not in dimensions]:
        listed = ", ".join(f"'{label}' of input '{free[label]}'" for label in missing)
        plural = "dimensions have" if len(missing) > 1 else "dimension has"
        hint = f"bind it, for example {missing[0]}=1"
        raise UnsupportedError(f"{len(missing)} {plural} no size: {listed}", hint=hint)
    if surplus := [label for label in dimensions if label not in free]:
        known = ", ".join(f"'{label}'" for label in free) or "none"
        raise OptionError(f"the model has no free dimension '{surplus[0]}'", hint=f"free dimensions: {known}")
    if wrong := [label for label in free if _size(dimensions, label) < 0]:
        raise OptionError(f"dimension '{wrong[0]}' cannot be {dimensions[wrong[0]]!r} long")


def _size(dimensions: Mapping[str, int], label: str) -> int:
    """The size of a free dimension; -1 where there is none, or it is no number."""
    found = whole_number(dimensions.get(label))
    return -1 if found is None else found
