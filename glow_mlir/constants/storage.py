"""Module-level storage for passes and frontends: constants by value, new constants, unique names."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, LocationAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.weights import add_weights, deferred_weights, is_deferred, weights
from glow_mlir.dialects.attribute_syntax import float_attribute, integer_attribute
from glow_mlir.dialects.element_types import element_type, is_narrow_float, numpy_dtype
from glow_mlir.dialects.glow_high.storage import (
    ConstantOp,
    ContentOp,
    FunctionOp,
    GetOp,
    SplatOp,
    StorageOp,
    inline_elements,
)
from glow_mlir.dialects.glow_low.memory import WeightOp
from glow_mlir.dialects.properties import number
from glow_mlir.dialects.shapes import shape_of, sizes_of, tensor
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.identity import number_of, subclasses_of
from glow_mlir.support.symbols import are_numbers


def constant_array(op: ContentOp) -> np.ndarray:
    """The value of a constant, or the initial value of state that has one."""
    if op.weights is not None:
        return weights(op.weights.data)
    assert op.value is not None
    return dense_array(op.value, op.tensor_type)


def deferred_constant(op: ContentOp) -> Deferred:
    """The value of a constant, or the initial value of state that has one, computed on demand."""
    return Stored(constant_array(op)) if op.weights is None else deferred_weights(op.weights.data)


def dense_array(value: DenseIntOrFPElementsAttr, type_: TensorType[Attribute]) -> np.ndarray:
    """The elements of a dense attribute as an array of `type_`."""
    dtype, values = numpy_dtype(type_.element_type), list(value.get_values())
    # By default, numpy infers smaller integers, and floats for an integer beyond int64.
    most = np.iinfo(np.int64).max
    has_wide = dtype.kind == "u" and any(isinstance(number, int) and number > most for number in values)
    return np.array(values, np.uint64 if has_wide else None).astype(dtype).reshape(shape_of(type_))


def _known_splat(value: SSAValue) -> SplatOp | None:
    """The splat behind a value, if all its sizes are numbers."""
    owner = value.owner
    return owner if isinstance(owner, SplatOp) and are_numbers(sizes_of(value)) else None


def splat_array(op: SplatOp) -> np.ndarray:
    """The value of a splat."""
    type_ = op.result.type
    assert isinstance(type_, TensorType)
    return np.full(shape_of(type_), number(op.value), numpy_dtype(type_.element_type))


MAX_INLINE = 16
"""Constants up to this many elements are written into the text instead of the weight file."""


def reads_back(array: np.ndarray) -> bool:
    """Whether every element survives a round trip through MLIR's dense syntax bit for bit."""
    if not is_float_dtype(array.dtype):
        return True
    # xDSL writes some floats in hexadecimal, but reads those as integers; it does not distinguish -0 from 0.
    digits = 17 if array.dtype.itemsize == 8 else 9
    # Some releases of ml_dtypes cannot format narrow floats; Python's floats represent all of them.
    numbers = [float(item) for item in array.reshape(-1)]
    return all(
        math.isfinite(number)
        and (number != 0 or math.copysign(1, number) > 0)
        and (float(array.dtype.type(f"{number:.5e}")) == number or "." in f"{number:.{digits}g}")
        for number in numbers
    )


StorageT = TypeVar("StorageT", bound=StorageOp)

PackedForm = tuple[str, str, tuple[int, ...], tuple[tuple[str, int], ...], str]
"""
Provenance of packed storage: source name, form, shape when read, parameters of the form, and the target whose code
packs it; `None` for a constant.
"""


ValueKey = tuple[Hashable, int]
"""Key of constants of equal value and type."""


def _value_key(op: ConstantOp) -> ValueKey:
    weights, value = op.weights, op.value
    assert weights is not None or value is not None
    return value if weights is None else weights.data, number_of(op.type)


def _numbered(stem: str) -> Iterator[str]:
    """`stem`, `stem_1`, `stem_2`, …"""
    yield stem
    yield from (f"{stem}_{number}" for number in itertools.count(1))


class Storage:
    """The storage of one module, by name; keep one for a whole pass, since building it walks the module."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.packed: dict[PackedForm, str] = {}
        """Names of storage packed for kernels."""
        self.declared: dict[Block, dict[str, WeightOp]] = {}
        """Declarations at the start of function bodies, by name of the storage."""
        self._taken: dict[str, int] = {}
        """Name → number of suffixes known to be taken."""
        self._last: StorageOp | None = None

    @cached_property
    def by_name(self) -> dict[str, StorageOp]:
        """Name → storage; built on demand, since most passes never need it."""
        return {cast("StringAttr", op.properties["sym_name"]).data: op for op in self._ops(StorageOp)}

    def _ops(self, kind: type[StorageT]) -> list[StorageT]:
        """The storage ops of a kind, in order."""
        found: list[StorageT] = []
        is_wanted = subclasses_of(kind)
        op = self.module.body.block.first_op
        while op is not None:
            if is_wanted[type(op)]:
                found.append(cast("StorageT", op))
            op = op.next_op
        return found

    @cached_property
    def _by_value(self) -> dict[ValueKey, ConstantOp]:
        """The first constant of each value and type; built on demand, since most passes add none."""
        found: dict[ValueKey, ConstantOp] = {}
        for op in self._ops(ConstantOp):
            found.setdefault(_value_key(op), op)
        return found

    def unique_name(self, wish: str) -> str:
        """`wish`, or `wish_1`, … if that is taken."""
        if wish not in self.by_name:
            return wish
        count = self._taken.get(wish, 0)
        while f"{wish}_{count + 1}" in self.by_name:
            count += 1
        self._taken[wish] = count
        return f"{wish}_{count + 1}"

    def unique_function(self, wish: str) -> str:
        """Reserve a function name like `wish` that is a C identifier and unused in the module."""
        stem = re.sub(r"\W", "_", wish, flags=re.ASCII)
        name = next(name for name in _numbered(stem) if name not in self.by_name and name not in self._functions)
        self._functions.add(name)
        return name

    @cached_property
    def _functions(self) -> set[str]:
        """The names of functions."""
        return {op.sym_name.data for op in self.module.body.block.ops if isinstance(op, FunctionOp)}

    def add(self, op: StorageOp) -> StorageOp:
        """Append `op` to the module's storage, before the functions."""
        block = self.module.body.block
        last = self._last if self._last is not None and self._last.parent is block else None
        following = block.first_op if last is None else last.next_op
        is_storage = subclasses_of(StorageOp)
        while following is not None and is_storage[type(following)]:
            following = following.next_op
        if following is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, following)
        self._last = op
        self.by_name[op.sym_name.data] = op
        return op

    def add_constant(self, wish: str, array: np.ndarray | Deferred, location: LocationAttr | None = None) -> ConstantOp:
        """
        Add a constant with the value of `array`, named like `wish`, or return an existing one of equal value and type.
        """
        type_ = tensor(array.shape, element_type(array.dtype))
        value = content_of(array, type_)
        key = value, number_of(type_)
        known = self._by_value.get(key)
        if known is not None and known.parent is self.module.body.block:
            return known
        op = ConstantOp.of(self.unique_name(wish), type_, value, location)
        self._by_value[key] = op
        self.add(op)
        return op

    def erase_constant(self, name: str) -> bool:
        """Erase the constant of a name, which nothing reads; returns whether it is a constant."""
        op = self.by_name.get(name)
        if not isinstance(op, ConstantOp):
            return False
        del self.by_name[name]
        self.module.body.block.erase_op(op)
        return True

    def is_constant(self, value: SSAValue) -> bool:
        """Whether a value is a constant, or a splat whose sizes are numbers."""
        return _known_splat(value) is not None or self._constant_of(value) is not None

    def value_of(self, value: SSAValue) -> np.ndarray | None:
        """The value of a constant, or of a splat whose sizes are numbers; `None` for other values."""
        if (splat := _known_splat(value)) is not None:
            return splat_array(splat)
        op = self._constant_of(value)
        return None if op is None else constant_array(op)

    def deferred(self, value: SSAValue) -> Deferred | None:
        """Like `value_of`, but computed on demand."""
        if (splat := _known_splat(value)) is not None:
            return Stored(splat_array(splat))
        op = self._constant_of(value)
        return None if op is None else deferred_constant(op)

    def _constant_of(self, value: SSAValue) -> ConstantOp | None:
        """The constant that a value reads, or `None`."""
        owner = value.owner
        op = self.by_name.get(owner.storage_name) if isinstance(owner, GetOp) else None
        return op if isinstance(op, ConstantOp) else None


def content_of(array: np.ndarray | Deferred, type_: TensorType[Attribute]) -> str | DenseIntOrFPElementsAttr:
    """The elements of an array of that type if they are few, or else its digest in the weight store."""
    if isinstance(array, Deferred) and not is_deferred(array):
        array = array.array()
    if isinstance(array, np.ndarray) and array.size <= MAX_INLINE and reads_back(array):
        return inline_elements(type_, array.reshape(-1).tolist())
    return add_weights(array)


def constant_op(
    storage: Storage, array: np.ndarray | Deferred, wish: str, location: LocationAttr | None = None
) -> Operation:
    """An op, not yet inserted, whose result is `array`: a splat for a single element, else the `get` of a constant."""
    if math.prod(array.shape) == 1:
        value = array.array() if isinstance(array, Deferred) else array
        element = element_type(array.dtype)
        return SplatOp.make(value=scalar_attribute(value.reshape(-1)[0], element), shape=array.shape, location=location)
    return GetOp.of(storage.add_constant(wish, array, location), location)


def scalar_attribute(value: float | np.generic, element: Attribute) -> Attribute:
    """The attribute of one element of that type."""
    if is_narrow_float(element):
        return float_attribute(float(value), element)
    number_ = value.item() if isinstance(value, np.generic) else value
    if isinstance(number_, float):
        return float_attribute(number_, element)
    return integer_attribute(int(number_), element)
