"""Shapes and types of values: one accessor for tensors and buffers, and the arithmetic of shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import cache
from operator import attrgetter
from typing import Any, TypeGuard, TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.element_types import byte_width, is_storable
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.sizes import RunTimeSizeError, SizesAttr, largest, smallest, static
from glow_mlir.options.policy import MAX_BYTES
from glow_mlir.support.identity import kept_by_identity
from glow_mlir.support.symbols import Size, Sizes, product_of

Shape = tuple[int, ...]

SizesT = TypeVar("SizesT", Shape, Sizes)
"""Shapes as numbers, or with sizes that are known at run time only."""

SHAPED = (TensorType, MemRefType)
"""The types of tensors and buffers."""


NOTHING = NoneAttr()
"""The encoding of a type without one, shared because making one takes time."""

VALUES = (OpResult, BlockArgument)
"""The classes of values, for checks by identity: `isinstance` of an abstract class is several times slower."""


_type_of_value: Callable[[Any], Attribute] = attrgetter("_type")
"""The type of a value; xDSL's property takes twice the time."""


def type_of(value: SSAValue | Attribute) -> Attribute:
    """The type of a value, or the type itself."""
    kind = type(value)
    if kind in VALUES or (kind not in SHAPED and isinstance(value, SSAValue)):
        return _type_of_value(value)
    return value  # pyright: ignore[reportReturnType]


def _is_shaped(type_: Attribute) -> TypeGuard[TensorType[Attribute] | MemRefType[Attribute]]:
    """Whether a type is that of tensors or buffers."""
    return type(type_) in SHAPED or isinstance(type_, SHAPED)


def shape_of(value: SSAValue | Attribute) -> Shape:
    """
    The static shape of a tensor or buffer, given as a value or as its type.

    Raises `RunTimeSizeError` where a size is known at run time only; callers that support such sizes use `sizes_of`.
    """
    return _shape(_type_of_value(value) if type(value) in VALUES else type_of(value))


@kept_by_identity
def _shape(type_: Attribute) -> Shape:
    """The sizes of a type, as numbers."""
    return static(_sizes(type_))


def split_axes(sizes: Sizes, viewed: Sizes) -> list[Sizes]:
    """The sizes of the axes of a view that each axis is split into, one or several."""
    left, groups = list(viewed), list[Sizes]()
    for axis, size in enumerate(sizes):
        group = [left.pop(0)]
        while group != [size] and product_of(group) != size:
            group.append(left.pop(0))
        # An axis of size 1 may belong to either neighbour.
        while len(left) > len(sizes) - 1 - axis and left[0] == 1:
            group.append(left.pop(0))
        groups.append(tuple(group))
    return groups


def split_strides(sizes: Sizes, strides: Sequence[int], viewed: Sizes) -> Shape:
    """The strides of a view whose axes are those of a buffer or parts of them."""
    if len(sizes) == len(viewed):
        return tuple(strides)
    found: list[int] = []
    for group, stride in zip(split_axes(sizes, viewed), strides, strict=True):
        counts = [size if isinstance(size, int) else 1 for size in group[1:]]
        found += [stride * math.prod(counts[start:]) for start in range(len(group))]
    return tuple(found)


def sizes_of(value: SSAValue | Attribute) -> Sizes:
    """The sizes of a tensor or buffer, given as a value or its type: numbers or symbolic sizes."""
    return _sizes(_type_of_value(value) if type(value) in VALUES else type_of(value))


@kept_by_identity
def _sizes(type_: Attribute) -> Sizes:
    """The sizes of a type."""
    if not _is_shaped(type_):
        raise VerifyException(f"expected a tensor or a buffer, got {type_}")
    shape = type_.get_shape()
    if DYNAMIC_INDEX not in shape:
        return shape
    encoding = type_.encoding if isinstance(type_, TensorType) else type_.memory_space
    declared = encoding.data if isinstance(encoding, SizesAttr) else ()
    symbolic = iter(size for size in declared if not isinstance(size, int))
    sizes = tuple(next(symbolic, None) if size == DYNAMIC_INDEX else size for size in shape)
    if None in sizes or next(symbolic, None) is not None:
        raise RunTimeSizeError("'?' that no #glow.sizes tells")
    return cast("Sizes", sizes)


UNKNOWN_SIZE = DYNAMIC_INDEX
"""A size in `declared_shape` that is not known; it is below 0."""


def declared_shape(type_: Attribute) -> Shape:
    """
    The sizes that a type has in text, `UNKNOWN_SIZE` for `?`: those of programs of other dialects, without symbols.

    The type has a shape, as tensors, buffers and vectors.
    """
    return tuple(cast("TensorType[Attribute]", type_).get_shape())


def has_static_shape(value: SSAValue | Attribute) -> bool:
    """Whether all sizes of a tensor or buffer are numbers."""
    return _is_static(type_of(value))


@kept_by_identity
def _is_static(type_: Attribute) -> bool:
    """Whether a type is of a tensor or buffer all of whose sizes are numbers."""
    return _is_shaped(type_) and DYNAMIC_INDEX not in type_.get_shape()


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor or buffer, given as a value or as its type."""
    type_: Any = _type_of_value(value) if type(value) in VALUES else type_of(value)
    if type(type_) in SHAPED or _is_shaped(type_):
        return type_.element_type
    raise VerifyException(f"expected a tensor or a buffer, got {type_}")


def size_along(value: SSAValue | Attribute, axis: int) -> int:
    """The size along an axis; raises `RunTimeSizeError` where it is known at run time only."""
    (size,) = static((sizes_of(value)[axis],))
    return size


def rank_of(value: SSAValue | Attribute) -> int:
    """The number of dimensions of a tensor or buffer."""
    return _rank(type_of(value))


@kept_by_identity
def _rank(type_: Attribute) -> int:
    """The number of dimensions that a type says."""
    if not _is_shaped(type_):
        raise VerifyException(f"expected a tensor or a buffer, got {type_}")
    return type_.get_num_dims()


def size_of(value: SSAValue | Attribute) -> int:
    """The number of elements of a tensor or buffer."""
    return math.prod(shape_of(value))


def has_one_element(value: SSAValue | Attribute) -> bool:
    """Whether a tensor or buffer has one element for all values of symbols."""
    return all(size == 1 for size in sizes_of(value))


def is_empty(value: SSAValue | Attribute) -> bool:
    """Whether a tensor or buffer has no element for all values of symbols."""
    return 0 in sizes_of(value)


def may_be_empty(value: SSAValue | Attribute) -> bool:
    """Whether a tensor or buffer has no element for some values of symbols."""
    return any(smallest(size) == 0 for size in sizes_of(value))


def largest_shape(value: SSAValue | Attribute) -> Shape:
    """The shape of a tensor or buffer with all symbols at their upper bounds."""
    return _largest(type_of(value))


@kept_by_identity
def _largest(type_: Attribute) -> Shape:
    """The shape with all symbols at their upper bounds."""
    return tuple(map(largest, _sizes(type_)))


def bytes_of(value: SSAValue | Attribute) -> int:
    """The bytes of the elements of a tensor or buffer without gaps; the maximum if it depends on symbols."""
    return _bytes(type_of(value))


@kept_by_identity
def _bytes(type_: Attribute) -> int:
    """The bytes of the elements of a type without gaps."""
    return math.prod(_largest(type_)) * byte_width(element_of(type_))


def tensor(shape: Sequence[Size], element: Attribute) -> TensorType[Attribute]:
    """The tensor type of those sizes and that element type."""
    return _tensor(tuple(shape), element)


@cache
def _tensor(shape: Sizes, element: Attribute) -> TensorType[Attribute]:
    """The type, cached: xDSL takes 0.1 ms to make it."""
    dimensions, encoding = encoded(shape)
    return TensorType(element, dimensions, encoding)


def encoded(sizes: Sizes) -> tuple[Shape, Attribute]:
    """
    The encoding of sizes in types: numbers, `DYNAMIC_INDEX` for symbolic ones, and the attribute that lists those.
    """
    symbolic = tuple(size for size in sizes if not isinstance(size, int))
    dimensions = tuple(size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes)
    return dimensions, SizesAttr(symbolic) if symbolic else NOTHING


MAX_AXES = 32
"""The maximum rank: parts of numpy have this limit, and windows use two axes for each, of numpy's 64."""


def verify_storable(value: SSAValue | Attribute, noun: str, reach: int | None = None) -> None:
    """
    Check that a tensor or buffer has a size and elements that memory can hold.

    `reach` is the number of elements that it spans, if different from its size. Raises `VerifyException`.
    """
    shape, element = largest_shape(value), element_of(value)
    require(min(map(smallest, sizes_of(value)), default=0) >= 0, f"{noun} has sizes from 0 on")
    require(is_storable(element), f"no {noun.split()[-1]} has elements of {element}")
    if isinstance(element, UniformQuantizedType):
        _verify_quantized_axis(shape, element, noun)
    verify_extent(value, noun, reach)


def verify_extent(value: SSAValue | Attribute, noun: str, reach: int | None = None) -> None:
    """Check that memory can hold as many elements as a tensor or buffer has, or spans; raises `VerifyException`."""
    element = element_of(value)
    spanned = math.prod(size for size in largest_shape(value) if size) if reach is None else reach
    require(spanned * byte_width(element) <= MAX_BYTES, f"{noun} of {spanned} elements of {element} fits no memory")


def _verify_quantized_axis(shape: Shape, element: UniformQuantizedType, noun: str) -> None:
    """Check that there is a scale for each index of the quantized axis."""
    axis, scales = element.axis.data, len(element.scales.data)
    if element.is_per_axis:
        require(axis < len(shape), f"the axis {axis} of quantization is none of the {len(shape)} axes of {noun}")
        require(scales == shape[axis], f"{scales} scales do not fit an axis of {shape[axis]} elements")


class Relation(Enum):
    """The required relation of two sizes of an axis."""

    EQUAL = auto()
    BROADCAST = auto()
    """Equal, or one of them is 1."""
    COVERS = auto()
    """The first is no smaller than the second."""


class SizesDifferError(VerifyException):
    """
    The sizes `one` and `other` of operands do not fit, as far as is known at compile time.

    They belong to the `axis` of operands, counted from the back, or, where it is `None`, to any axes of that size.
    """

    def __init__(
        self, message: str, one: Size, other: Size, relation: Relation = Relation.EQUAL, axis: int | None = None
    ) -> None:
        self.one = one
        self.other = other
        self.relation = relation
        self.axis = axis
        super().__init__(message)


def broadcast(*shapes: SizesT, behind: int | None = 0) -> SizesT:
    """
    The shape that `shapes` broadcast to under numpy's rule.

    Raises `SizesDifferError` where they do not. `behind` is the number of the operands' axes after those of the shapes;
    `None` if the shapes are not axes of operands.
    """
    rank = max(map(len, shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                message = f"shapes {', '.join(map(str, shapes))} do not broadcast"
                from_back = None if behind is None else axis - rank - behind
                relation = Relation.EQUAL if behind is None else Relation.BROADCAST
                raise SizesDifferError(message, size, result[axis], relation, from_back)
            result[axis] = size
    return cast("SizesT", tuple(result))


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; raises `VerifyException` outside [-rank, rank)."""
    if not -rank <= axis < max(rank, 1):
        raise VerifyException(f"axis {axis} is out of range for rank {rank}")
    return axis % max(rank, 1)


def require(condition: bool, message: str, *values: object) -> None:
    """
    Raise `VerifyException(message)` unless `condition` holds.

    `values` replace each `{}` in the message (`str.format`) only on failure: printing a type takes longer than the
    check.
    """
    if not condition:
        raise VerifyException(message.format(*values) if values else message)


def require_broadcast_to(found: Sizes, wanted: Sizes, message: str) -> None:
    """Raise `VerifyException(message)` for a shape that does not broadcast to another one, or `SizesDifferError`."""
    require(len(found) <= len(wanted), message)
    for one, other in zip(reversed(found), reversed(wanted)):
        if one not in (1, other):
            raise SizesDifferError(message, one, other)


def require_equal(found: Size | Sizes, wanted: Size | Sizes, message: str) -> None:
    """Raise `SizesDifferError(message)` for the first sizes that are not equal, `VerifyException` for other ranks."""
    if found == wanted:
        return
    ones, others = (sizes if isinstance(sizes, tuple) else (sizes,) for sizes in (found, wanted))
    if len(ones) != len(others):
        raise VerifyException(message)
    one, other = next(pair for pair in zip(ones, others, strict=True) if pair[0] != pair[1])
    raise SizesDifferError(message, one, other)
