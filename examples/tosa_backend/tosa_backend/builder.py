"""Writes operations of TOSA, one tensor each, and knows what stands for each value of `glow_high`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    TensorType,
    UnknownLoc,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from glow_mlir.constants.storage import constant_array, reads_back, splat_array
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.storage import ConstantOp, FunctionOp, GetOp, SplatOp, StorageOp
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from tosa_backend.biases import biases_of
from tosa_backend.dialect import OPERATIONS, SINGLE_ROUND, ShapeType
from tosa_backend.elements import held, held_numpy, to_held

MAX_INLINE = 8
"""Elements up to which a constant is written into the text; of others, the bytes are beside it."""

ONE_SCALE = 30
"""The multiplier 2^30, shifted by 30 bits, is a scale of 1."""


class Content(str):
    """The name of a constant's bytes, which follows from them; it keeps the array."""

    array: np.ndarray

    @staticmethod
    def of(array: np.ndarray) -> Content:
        """The name of the bytes of an array."""
        packed = np.ascontiguousarray(array)
        name = Content(f"c{hashlib.blake2b(packed.tobytes(), digest_size=12).hexdigest()}")
        name.array = packed
        return name


def known_in(storage: Mapping[str, StorageOp], value: SSAValue) -> np.ndarray | None:
    """The elements of a constant of a module; `None` for other values."""
    if isinstance(value.owner, SplatOp):
        return splat_array(value.owner)
    read = storage.get(value.owner.storage_name) if isinstance(value.owner, GetOp) else None
    return constant_array(read) if isinstance(read, ConstantOp) else None


class TosaBuilder:
    """
    Writes the body of one function.

    `values` has what stands for values of `glow_high` so far. Constants are written where they are first read, and
    equal ones once.
    """

    def __init__(self, function: FunctionOp, block: Block) -> None:
        self.block = block
        self.values: dict[SSAValue, SSAValue] = {}
        self._constants: dict[Attribute, SSAValue] = {}
        self._arrays: dict[SSAValue, np.ndarray] = {}
        self.location: LocationAttr = UnknownLoc()
        self._storage = function.storage()
        self.biases, self.with_bias = biases_of(function, self.known)

    # ---- operations --------------------------------------------------------------------------------------------

    def __call__(
        self,
        name: str,
        *operands: SSAValue,
        shape: Shape | None = None,
        element: Attribute | None = None,
        **fields: Any,
    ) -> SSAValue:
        """Write `tosa.name`; by default its result has the type of the first operand."""
        like = operands[0] if operands else None
        sizes = shape_of(like) if shape is None and like is not None else shape
        kind = element_of(like) if element is None and like is not None else element
        assert sizes is not None
        assert kind is not None
        return self._write(name, operands, TensorType(kind, sizes), fields)

    def _write(self, name: str, operands: Sequence[SSAValue], type_: Attribute, fields: dict[str, Any]) -> SSAValue:
        properties = {field: _attribute(value) for field, value in fields.items()}
        op = OPERATIONS[f"tosa.{name}"].create(
            operands=operands, result_types=[type_], properties=properties, location=self.location
        )
        self.block.add_op(op)
        return op.results[0]

    def constant(self, array: np.ndarray, element: Attribute | None = None) -> SSAValue:
        """A constant of elements as TOSA holds them."""
        kind = element_type(array.dtype) if element is None else element
        type_: TensorType[Any] = TensorType(kind, array.shape)
        values = _contents(array, type_)
        found = self._constants.get(values)
        if found is None:
            found = self._constants[values] = self._write("const", (), type_, {"values": values})
            self._arrays[found] = array
        return found

    def splat(self, value: float, element: Attribute, shape: Shape = (1,)) -> SSAValue:
        """A constant of equal elements."""
        return self.constant(np.full(shape, value, held_numpy(element)), element)

    def sizes(self, numbers: Sequence[int]) -> SSAValue:
        """A list of sizes."""
        type_: TensorType[Any] = TensorType(IndexType(), (len(numbers),))
        values = DenseIntOrFPElementsAttr.from_list(type_, list(numbers))
        found = self._constants.get(values)
        if found is None:
            shape = ShapeType(IntAttr(len(numbers)))
            found = self._constants[values] = self._write("const_shape", (), shape, {"values": values})
        return found

    # ---- values of glow_high -----------------------------------------------------------------------------------

    def known(self, value: SSAValue) -> np.ndarray | None:
        """The elements of a constant, as `glow_high` has them; `None` for other values."""
        return known_in(self._storage, value)

    def value(self, value: SSAValue) -> SSAValue:
        """What stands for a value of `glow_high`."""
        if value not in self.values:
            array = self.known(value)
            assert array is not None
            return self.constant(to_held(array), held(element_of(value)))
        return self.values[value]

    def ranked(self, value: SSAValue, rank: int) -> SSAValue:
        """A tensor of TOSA with axes of size 1 in front, so that it has so many."""
        shape = shape_of(value)
        return self.reshape(value, (1,) * (rank - len(shape)) + shape)

    # ---- what rules share --------------------------------------------------------------------------------------

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The elements in another shape."""
        if shape_of(value) == shape:
            return value
        if value in self._arrays:
            return self.constant(self._arrays[value].reshape(shape), element_of(value))
        return self("reshape", value, self.sizes(shape), shape=shape)

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """The axes in another order."""
        if list(permutation) == list(range(len(permutation))):
            return value
        if value in self._arrays:
            return self.constant(np.ascontiguousarray(self._arrays[value].transpose(permutation)), element_of(value))
        shape = tuple(shape_of(value)[axis] for axis in permutation)
        return self("transpose", value, shape=shape, perms=DenseArrayBase.from_list(i32, list(permutation)))

    def slice(self, value: SSAValue, starts: Sequence[int], shape: Shape) -> SSAValue:
        """A box of elements."""
        if shape_of(value) == shape:
            return value
        if value in self._arrays:
            part = tuple(slice(start, start + size) for start, size in zip(starts, shape, strict=True))
            return self.constant(np.ascontiguousarray(self._arrays[value][part]), element_of(value))
        return self("slice", value, self.sizes(starts), self.sizes(shape), shape=shape)

    def concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """Tensors one behind the other along an axis."""
        if len(values) == 1:
            return values[0]
        shape = list(shape_of(values[0]))
        shape[axis] = sum(shape_of(value)[axis] for value in values)
        return self("concat", *values, shape=tuple(shape), axis=self.axis(axis))

    def pad(self, value: SSAValue, widths: Sequence[tuple[int, int]], fill: SSAValue) -> SSAValue:
        """The tensor in a border of `fill`, a tensor of one element."""
        if not any(map(any, widths)):
            return value
        shape = tuple(before + size + after for size, (before, after) in zip(shape_of(value), widths, strict=True))
        flat = [width for pair in widths for width in pair]
        return self("pad", value, self.sizes(flat), fill, shape=shape)

    def tile(self, value: SSAValue, multiples: Sequence[int]) -> SSAValue:
        """The tensor as often along each axis."""
        if set(multiples) <= {1}:
            return value
        if value in self._arrays:
            return self.constant(np.tile(self._arrays[value], multiples), element_of(value))
        shape = tuple(size * count for size, count in zip(shape_of(value), multiples, strict=True))
        return self("tile", value, self.sizes(multiples), shape=shape)

    def axis(self, axis: int) -> Attribute:
        """The property that names an axis."""
        return IntegerAttr(axis, i32)

    def along(self, name: str, value: SSAValue, axis: int, **fields: Any) -> SSAValue:
        """A reduction along an axis, which stays with size 1."""
        shape = list(shape_of(value))
        shape[axis] = 1
        return self(name, value, shape=tuple(shape), axis=self.axis(axis), **fields)

    def reverse(self, value: SSAValue, axis: int) -> SSAValue:
        """The elements along an axis, the last first."""
        return self("reverse", value, axis=self.axis(axis))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The elements in another type."""
        return value if element_of(value) == element else self("cast", value, element=element)

    def mul(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The product, with the operands' shapes broadcast."""
        shape = np.broadcast_shapes(shape_of(left), shape_of(right))
        return self("mul", left, right, self.splat(0, i8), shape=shape)

    def add(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """The sum, with the operands' shapes broadcast."""
        return self("add", left, right, shape=np.broadcast_shapes(shape_of(left), shape_of(right)))

    def negate(self, value: SSAValue) -> SSAValue:
        """Each element less than 0 by as much as it was more."""
        zero = self.splat(0, element_of(value))
        return self("negate", value, zero, zero)

    def clamp(self, value: SSAValue, low: int, high: int) -> SSAValue:
        """Integers limited to a range."""
        element: Any = element_of(value)
        return self("clamp", value, min_val=IntegerAttr(low, element), max_val=IntegerAttr(high, element))

    def flipped(self, value: SSAValue) -> SSAValue:
        """Integers of 8 bits with the other highest bit: from what holds a `ui8` to its bits, and back."""
        return self("bitwise_xor", value, self.splat(-128, i8, (1,) * len(shape_of(value))))

    def rescale(
        self,
        value: SSAValue,
        element: Attribute,
        multiplier: np.ndarray | int = 1 << ONE_SCALE,
        shift: np.ndarray | int = ONE_SCALE,
        zero_points: tuple[int, int] = (0, 0),
    ) -> SSAValue:
        """
        Integers less a zero point, times a multiplier, shifted, plus another zero point.

        There is one multiplier for all, or one for each index of the last axis.
        """
        factors, places = np.broadcast_arrays(np.atleast_1d(multiplier), np.atleast_1d(shift))
        constants = (
            self.constant(factors.astype(np.int32)),
            self.constant(places.astype(np.int8)),
            self.splat(zero_points[0], element_of(value)),
            self.splat(zero_points[1], element),
        )
        flags: dict[str, Any] = dict.fromkeys(("input_unsigned", "output_unsigned"), False)
        flags |= {"scale32": True, "per_channel": factors.size > 1}
        return self("rescale", value, *constants, element=element, rounding_mode=SINGLE_ROUND, **flags)


def _attribute(value: Any) -> Attribute:
    """The attribute of a property: a truth value, sizes, or what it is already."""
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, tuple):
        return DenseArrayBase.from_list(i64, list(cast("tuple[int, ...]", value)))
    return value


def _contents(array: np.ndarray, type_: TensorType[Any]) -> Attribute:
    """The elements of a constant: in the text where they are few or equal, else the name of their bytes."""
    flat = array.reshape(-1)
    is_splat = flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size
    few = flat[:1] if is_splat else flat
    if few.size > MAX_INLINE or not reads_back(few):
        return DenseResourceAttr(StringAttr(Content.of(array)), type_)
    elements = few.tolist() if array.dtype.kind == "f" else [int(item) for item in few]
    return DenseIntOrFPElementsAttr.from_list(type_, elements)
