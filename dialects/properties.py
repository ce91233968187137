"""How ops declare their properties and read them as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import base, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.support.identity import kept_by_identity
from glow_mlir.support.symbols import Size, Sizes


def int_prop(default: int | None = None) -> IntegerAttr[Any]:
    """Declare an integer property."""
    return prop_def(base(IntegerAttr), default_value=None if default is None else _integer(default))


def float_prop(default: float | None = None) -> FloatAttr[Any]:
    """Declare a floating-point property, stored as f32 like ONNX's, or as f64 where f32 would round one of f64."""
    return prop_def(base(FloatAttr), default_value=None if default is None else _float(default))


def flag_prop(default: bool = False) -> IntegerAttr[Any]:
    """Declare a Boolean property."""
    return prop_def(base(IntegerAttr), default_value=_integer(default))


def ints_prop(default: Sequence[int] | None = None) -> DenseArrayBase[Any]:
    """Declare a property that is a list of integers."""
    return prop_def(base(DenseArrayBase), default_value=None if default is None else _ints(default))


def sizes_prop() -> DenseArrayBase[Any] | SizesAttr:
    """Declare the sizes of all axes."""
    return prop_def(base(DenseArrayBase) | base(SizesAttr))


def optional_sizes_prop() -> DenseArrayBase[Any] | SizesAttr | None:
    """Declare sizes that may be absent."""
    return opt_prop_def(base(DenseArrayBase) | base(SizesAttr))


def size_prop(default: int) -> IntegerAttr[Any] | DenseArrayBase[Any] | SizesAttr:
    """Declare one size: a number, or a list of one where it may be known at run time only."""
    declared = base(IntegerAttr) | base(DenseArrayBase) | base(SizesAttr)
    return prop_def(declared, default_value=_integer(default))


def text_prop(default: str | None = None) -> StringAttr:
    """Declare a property that is a word."""
    return prop_def(base(StringAttr), default_value=None if default is None else StringAttr(default))


def optional_ints_prop() -> DenseArrayBase[Any] | None:
    """Declare a list of integers that may be absent."""
    return opt_prop_def(base(DenseArrayBase))


def optional_type_prop() -> TypeAttribute | None:
    """Declare a type that may be absent."""
    return opt_prop_def(base(TypeAttribute))


def floats_prop() -> DenseArrayBase:
    """Declare a property that is a list of f32 numbers."""
    return prop_def(base(DenseArrayBase))


def optional_floats_prop() -> DenseArrayBase | None:
    """Declare a list of f32 numbers that may be absent."""
    return opt_prop_def(base(DenseArrayBase))


def _integer(value: int) -> IntegerAttr[Any]:
    return cast("IntegerAttr[Any]", to_attribute(value))


def _float(value: float) -> FloatAttr[Any]:
    return cast("FloatAttr[Any]", to_attribute(float(value)))


def _ints(value: Sequence[int]) -> DenseArrayBase[Any]:
    return cast("DenseArrayBase[Any]", to_attribute(tuple(value)))


def sizes(value: Attribute | None) -> Sizes:
    """Sizes of all axes as a tuple: numbers or symbolic sizes; absent gives `()`."""
    return value.data if isinstance(value, SizesAttr) else ints(value)


def size(value: Attribute) -> Size:
    """One size: a number or a symbolic size."""
    (found,) = sizes(value) if value.name in (DenseArrayBase.name, SizesAttr.name) else (integer(value),)
    return found


def size_of_property(given: Size) -> int | Sizes:
    """Convert a size to the form of `size_prop`."""
    return given if isinstance(given, int) else (given,)


@kept_by_identity
def ints(attribute: Attribute | None) -> tuple[int, ...]:
    """The integers of a list property; absent gives `()`."""
    if attribute is None:
        return ()
    if not isinstance(attribute, DenseArrayBase):
        raise VerifyException(f"expected a list of integers, got {attribute}")
    return tuple(int(item) for item in attribute.iter_values())


@kept_by_identity
def floats(attribute: Attribute | None) -> tuple[float, ...]:
    """The numbers of a list property; absent gives `()`."""
    if attribute is None:
        return ()
    if not isinstance(attribute, DenseArrayBase):
        raise VerifyException(f"expected a list of numbers, got {attribute}")
    return tuple(float(item) for item in attribute.iter_values())


def items_of(attribute: Attribute) -> tuple[Size | float, ...]:
    """The items of a list property: integers, floats, or sizes."""
    is_list = attribute.name == DenseArrayBase.name
    return floats(attribute) if is_list and is_float(cast("Any", attribute).elt_type) else sizes(attribute)


def integer(attribute: Attribute) -> int:
    """The value of an integer property."""
    if not isinstance(attribute, IntegerAttr):
        raise VerifyException(f"expected an integer, got {attribute}")
    return attribute.value.data


def number(attribute: Attribute) -> float | int:
    """The value of a floating-point or integer property."""
    if not isinstance(attribute, FloatAttr | IntegerAttr):
        raise VerifyException(f"expected a number, got {attribute}")
    return attribute.value.data


def flag(attribute: Attribute) -> bool:
    """The value of a Boolean property."""
    return bool(integer(attribute))


def text(attribute: Attribute) -> str:
    """The value of a word property."""
    if not isinstance(attribute, StringAttr):
        raise VerifyException(f"expected a word, got {attribute}")
    return attribute.data


AttributeT = TypeVar("AttributeT", bound=Attribute)


def made_of(kind: type[AttributeT], **parameters: object) -> AttributeT:
    """An attribute with unchecked parameters: xDSL checks them, which takes ten times as long."""
    attribute = kind.__new__(kind)
    for name, value in parameters.items():
        object.__setattr__(attribute, name, value)
    return attribute


def word(data: str) -> StringAttr:
    """The attribute of a text."""
    return made_of(StringAttr, data=data)


def whole_number(data: int) -> IntegerAttr[Any]:
    """The attribute of an i64."""
    return made_of(IntegerAttr, value=made_of(IntAttr, data=data), type=i64)


_FLAT = ArrayAttr[StringAttr](())
"""The nested references of a symbol that is not nested."""


@kept_by_identity
def symbol_reference(name: StringAttr) -> SymbolRefAttr:
    """A reference to the symbol of that name."""
    return made_of(SymbolRefAttr, root_reference=name, nested_references=_FLAT)
