"""Instructions and declarations of memory: functions, weights, allocation, views and copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.irdl import (
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure

from glow_mlir.dialects.attribute_syntax import parse_properties, print_properties
from glow_mlir.dialects.element_types import byte_width, storage_of
from glow_mlir.dialects.glow_high.base import visible_properties, with_operand_accessors
from glow_mlir.dialects.glow_high.storage import FunctionOp, PlaceholderOp, StorageOp, splat_element
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, QualifiedOp, Qualifier
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.properties import symbol_reference
from glow_mlir.dialects.shapes import (
    NOTHING,
    Shape,
    element_of,
    encoded,
    has_static_shape,
    largest_shape,
    rank_of,
    require,
    sizes_of,
    type_of,
    verify_storable,
)
from glow_mlir.dialects.sizes import SizesAttr, largest, shape_at, smallest
from glow_mlir.support.identity import kept_by_identity, subclasses_of
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation

Buffer = MemRefType[Attribute]


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides of `shape`, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def strides_of(value: SSAValue | Attribute) -> Shape:
    """
    The strides of a buffer, in elements.

    A buffer whose type has no strides is laid out for its largest shape: strides are numbers, and elements beyond the
    run-time sizes are unused.
    """
    return _strides(type_of(value))


@kept_by_identity
def _strides(type_: Attribute) -> Shape:
    """The strides of buffers of a type."""
    strides = _layout_strides(type_)
    return contiguous_strides(largest_shape(type_)) if strides is None else strides


@kept_by_identity
def _layout_strides(type_: Attribute) -> Shape | None:
    """The strides that a buffer's type says; `None` for a buffer that is laid out for its largest shape."""
    assert isinstance(type_, MemRefType)
    if not isinstance(type_.layout, StridedLayoutAttr):
        return None
    return tuple(item.data for item in type_.layout.strides if isinstance(item, IntAttr))


def offset_of(value: SSAValue | Attribute) -> int:
    """The offset of a buffer's first element from the start of its allocation, in elements."""
    return _offset(type_of(value))


@kept_by_identity
def _offset(type_: Attribute) -> int:
    """The offset that a buffer's type says."""
    assert isinstance(type_, MemRefType)
    layout = type_.layout
    return layout.offset.data if isinstance(layout, StridedLayoutAttr) and isinstance(layout.offset, IntAttr) else 0


def has_unit_stride(value: SSAValue) -> bool:
    """Whether elements along the last axis follow each other; always for tensors."""
    strides = _layout_strides(type_of(value)) if isinstance(value.type, MemRefType) else None
    return strides is None or sizes_of(value)[-1] == 1 or strides[-1] == 1


def is_dense(value: SSAValue) -> bool:
    """Whether a buffer is contiguous; always for tensors."""
    return not isinstance(value.type, MemRefType) or is_contiguous(value)


def is_contiguous(value: SSAValue | Attribute) -> bool:
    """
    Whether the elements of a buffer follow each other without gaps, whatever symbols are.

    Axes of size one do not matter. Symbols may decide the size of the first of the others alone.
    """
    return _is_contiguous(type_of(value))


@kept_by_identity
def _is_contiguous(type_: Attribute) -> bool:
    """Whether the elements of buffers of a type follow each other without gaps."""
    sizes, dense = sizes_of(type_), contiguous_strides(largest_shape(type_))
    axes = [axis for axis in zip(sizes, _strides(type_), dense, strict=True) if axis[0] != 1]
    return all(isinstance(size, int) for size, _, _ in axes[1:]) and all(a == b for _, a, b in axes)


def has_default_layout(value: SSAValue | Attribute) -> bool:
    """Whether a buffer starts its allocation and is laid out for its largest shape; axes of size one do not matter."""
    return _has_default_layout(type_of(value))


@kept_by_identity
def _has_default_layout(type_: Attribute) -> bool:
    """Whether buffers of a type start their allocation and are laid out for their largest shape."""
    axes = zip(sizes_of(type_), _strides(type_), contiguous_strides(largest_shape(type_)), strict=True)
    return not _offset(type_) and all(size == 1 or a == b for size, a, b in axes)


def capacity_of(value: SSAValue | Attribute) -> Shape:
    """The shape that a weight's buffer is laid out for: its largest shape, or a larger one derived from its strides."""
    shape, strides = largest_shape(value), strides_of(value)
    return (*shape[:1], *(outer // inner for outer, inner in pairwise(strides))) if 0 not in strides else shape


def is_laid_out_wider(value: SSAValue | Attribute) -> bool:
    """Whether a buffer is laid out as one of its type with larger sizes that are known at run time only."""
    if offset_of(value) or has_static_shape(value):
        return False
    capacity = capacity_of(value)
    axes = zip(sizes_of(value), capacity, strict=True)
    fits = all(size == most if isinstance(size, int) else size.most <= most for size, most in axes)
    return fits and strides_of(value) == contiguous_strides(capacity)


def repeats_elements(value: SSAValue | Attribute) -> bool:
    """
    Whether elements of a buffer may share an address: the stride of an axis is smaller than the extent of all axes with
    shorter strides.
    """
    strides, shape, reach = strides_of(value), largest_shape(value), 1
    if 0 in shape:
        return False
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1 and stride < reach:
            return True
        reach += (size - 1) * stride
    return False


def extent_of(value: SSAValue | Attribute) -> int:
    """Elements from the start of the allocation to the end of the buffer, at its largest shape."""
    return _extent(type_of(value))


@kept_by_identity
def _extent(type_: Attribute) -> int:
    """Elements that buffers of a type reach over from the start of the allocation."""
    shape = largest_shape(type_)
    if 0 in shape:
        return _offset(type_)
    last = sum((size - 1) * stride for size, stride in zip(shape, _strides(type_), strict=True))
    return _offset(type_) + last + 1


def byte_size(value: SSAValue | Attribute) -> int:
    """Bytes that an allocation of this type takes; the most where symbols decide."""
    return extent_of(value) * byte_width(element_of(value))


ALIGNMENT = 64
"""The alignment of buffers, in bytes, in functions without a target."""


def aligned_size(size: int, alignment: int = ALIGNMENT) -> int:
    """`size` rounded up to an alignment, both in bytes."""
    return -(-size // alignment) * alignment


def buffer_type(sizes: Sizes, element: Attribute, strides: Shape | None = None, offset: int = 0) -> Buffer:
    """A buffer type; strides and offset are in elements, and left out where they are those of the largest shape."""
    plain = contiguous_strides(tuple(map(largest, sizes)))
    if not offset and (strides is None or tuple(strides) == plain):
        return _buffer_type(tuple(sizes), element, None, 0)
    return _buffer_type(tuple(sizes), element, tuple(strides or plain), offset)


@cache
def _buffer_type(sizes: Sizes, element: Attribute, strides: Shape | None, offset: int) -> Buffer:
    """The type, cached: xDSL takes 0.1 ms to make it."""
    layout = NOTHING if strides is None else StridedLayoutAttr(strides, offset)
    dimensions, encoding = encoded(sizes)
    return MemRefType(element, dimensions, layout, encoding)


def buffer_at(type_: Buffer, values: Mapping[str, int]) -> Buffer:
    """The type of a buffer for these values of symbols: fewer elements, at the same addresses."""
    if has_static_shape(type_):
        return type_
    return buffer_type(shape_at(sizes_of(type_), values), type_.element_type, strides_of(type_), offset_of(type_))


@op_definition
class FuncOp(FunctionOp):
    """
    A function of `glow_low`: declarations of weights, then instructions.

    When allocated, it has the bytes of its `activations` and of the `constants` that it reaches, and
    `activations_bound`, the lower bound of `activations` for any allocation. `binding_offsets` has, for each binding,
    the offset in the activations that is free while the binding is live, or -1: callers may bind it there.

    ```mlir
    glow_low.func @main(@x, @y) {
      %x = glow_low.weight @x : memref<4xf32>
      %y = glow_low.weight @y {mutable} : memref<4xf32>
      glow_low.relu @out %y, @in %x
    }
    ```
    """

    name = "glow_low.func"
    IS_QUALIFIED: ClassVar[bool] = True
    SIZED: ClassVar[type[Operation]] = QualifiedOp

    activations = opt_prop_def(base(IntegerAttr))
    activations_bound = opt_prop_def(base(IntegerAttr))
    constants = opt_prop_def(base(IntegerAttr))
    binding_offsets = opt_prop_def(DenseArrayBase.constr(i64))

    def holds(self, op: Operation) -> bool:
        return isinstance(op, WeightOp | AllocOp | AddressOp | QualifiedOp)

    def written_names(self) -> set[str]:
        weights = (op for op in self.block.ops if isinstance(op, WeightOp))
        return {op.storage_name for op in weights if op.mutable is not None}


class _Declaration(LeanOperation):
    """An op without operands whose result is a buffer: `name @symbol? {properties} : type`."""

    result = result_def(BUFFER)

    def print(self, printer: Printer) -> None:
        properties = visible_properties(self)
        symbol = properties.pop("symbol", None)
        if isinstance(symbol, SymbolRefAttr):
            printer.print_string(" ")
            printer.print_symbol_name(symbol.string_value())
        print_properties(printer, properties)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        declared = cls.get_irdl_definition().properties
        given: dict[str, Attribute] = {}
        if "symbol" in declared:
            given["symbol"] = SymbolRefAttr(parser.parse_symbol_name())
        given |= parse_properties(parser)
        parser.parse_punctuation(":")
        return cls.create(
            result_types=[parser.parse_type()],
            properties={k: v for k, v in given.items() if k in declared},
            attributes={k: v for k, v in given.items() if k not in declared},
        )


@op_definition
class WeightOp(_Declaration):
    """
    Declare module-level storage as a buffer (the paper's `declare`, Glow's WeightVar).

    Constants and inputs may only be read; `mutable` marks outputs and state. When allocated, `region` is `constants` or
    `bindings`, and `offset` the byte offset among the constants or the position among the bindings.
    """

    name = "glow_low.weight"

    symbol = prop_def(FlatSymbolRefAttrConstr)
    mutable = opt_prop_def(UnitAttr)
    region = opt_prop_def(StringAttr)
    offset = opt_prop_def(base(IntegerAttr))

    traits = traits_def(Pure(), KnownAttributes())

    @classmethod
    def of(cls, storage: StorageOp, location: LocationAttr | None = None, strides: Shape | None = None) -> WeightOp:
        """Declare `storage`; with strides where it is laid out for another shape than its largest."""
        properties: dict[str, Attribute] = {"symbol": symbol_reference(storage.sym_name)}
        if isinstance(storage, PlaceholderOp) and storage.is_mutable:
            properties["mutable"] = UnitAttr()
        type_ = storage.tensor_type
        buffer = buffer_type(sizes_of(type_), type_.element_type, strides)
        return cls.create(properties=properties, result_types=[buffer], location=location)

    def verify_(self) -> None:
        _verify_layout(self.result, "a weight")

    @property
    def storage_name(self) -> str:
        """Name of the storage that is declared."""
        return self.symbol.string_value()


class _AllocEffect(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.ALLOC, op.results[0])}


@op_definition
class AllocOp(_Declaration):
    """
    A buffer whose life begins here (Glow's AllocActivation); its content is undefined.

    When allocated, `offset` is its byte offset in the activations region. In a host program, `device` names the device
    in whose memory it is, by default the host's.
    """

    name = "glow_low.alloc"

    offset = opt_prop_def(base(IntegerAttr))
    device = opt_prop_def(StringAttr)

    traits = traits_def(_AllocEffect(), KnownAttributes())

    @classmethod
    def of(cls, type_: Buffer, location: LocationAttr | None = None, device: str = "") -> AllocOp:
        """Allocate a buffer of that type, in the memory of a device if one is named."""
        properties: dict[str, Attribute] = {"device": StringAttr(device)} if device else {}
        return cls.create(result_types=[type_], properties=properties, location=location)

    def verify_(self) -> None:
        _verify_layout(self.result, "an allocation")
        require(offset_of(self.result) == 0, "an allocation starts at offset 0; use a view for the rest")
        require(not repeats_elements(self.result), "elements of an allocation share a place")


@with_operand_accessors
@op_definition
class DeallocOp(Instruction):
    """The life of an allocation ends here (Glow's DeallocActivation)."""

    name = "glow_low.dealloc"
    NEEDS_KERNEL: ClassVar[bool] = False
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"buffer": Qualifier.OUT}

    buffer = operand_def(BUFFER)

    def verify_(self) -> None:
        allocation = self.buffer.owner
        require(isinstance(allocation, AllocOp), "only an allocation can be deallocated")
        require(allocation.parent is self.parent, "an allocation is deallocated in the block that allocates it")


class AddressOp(LeanOperation):
    """An op that gives another address in memory that is already there."""

    MOVES: ClassVar[bool] = False
    """Whether the address changes from trip to trip of a loop."""

    source = operand_def(BUFFER)
    result = result_def(BUFFER)

    def verify_address(self, noun: str, moved: int = 0, sized: Sequence[tuple[Size, int]] = ()) -> None:
        """
        Check that the result, `moved` elements further than its type says, is a part of the allocation.

        `sized` are the moves of loops whose trips are a size known at run time only: number of trips and step.
        """
        stored = storage_of(element_of(self.source)) == storage_of(element_of(self.result))
        require(stored, f"{noun} keeps the type in which elements are stored")
        # Offsets count from the start of the allocation: a view of a window would not move with it.
        moving = isinstance(self.source.owner, AddressOp) and self.source.owner.MOVES
        require(not moving, "a window cannot be viewed: it moves; take a window of the allocation")
        _verify_layout(self.result, noun)
        available, needed = extent_of(root_of(self.source)), extent_of(self.result) + moved
        require(needed <= available, f"the {noun[2:]} reaches {needed} elements into an allocation of {available}")
        _verify_run_time_sizes(root_of(self.source), self.result, noun, moved, sized)


def _verify_run_time_sizes(
    root: SSAValue, part: SSAValue, noun: str, moved: int, sized: Sequence[tuple[Size, int]]
) -> None:
    """
    Check that a part of an allocation is inside it, and overlaps the same other parts, for all values of symbols.

    It is where each such axis is one of the memory's. Of the memory's others, the part has places that are always
    there; and what else moves in it stays in one step of such an axis, or moves in steps of all that it may be long.
    """
    if (has_static_shape(root) and has_static_shape(part)) or (part.type == root.type and not moved):
        return
    axes = [list(zip(sizes_of(value), strides_of(value), strict=True)) for value in (root, part)]
    axes[1] += sized  # A loop of a size steps along an axis of it.
    moved -= sum((largest(size) - 1) * step for size, step in sized if step > 0)
    own, kept = (Counter(axis for axis in found if not isinstance(axis[0], int)) for found in axes)
    # Some elements may be read where all are there; who wrote some would seem to have written the most there may be.
    is_constant = isinstance(root.owner, WeightOp) and root.owner.mutable is None
    added = list((kept - own).elements())  # Parts of what has other sizes.
    is_read = is_constant or not (own or any(map(_is_write, part.uses)))
    require(not added or is_read, f"{noun} keeps axes whose size is known at run time only")
    steps = [*added, *((size, stride) for size, stride in axes[1] if isinstance(size, int))]
    fixed = [((largest(size) - 1) * stride, stride) for size, stride in steps if largest(size) > 1]
    for size, step in own:
        span = max(1, step * largest(size))
        reach = (offset_of(part) + moved) % span + sum(length for length, stride in fixed if stride % span)
        always = step if (size, step) in kept else step * smallest(size)
        require(reach < always, f"{noun} stays in what is always there of an axis whose size is known at run time only")


def _is_write(use: Use) -> bool:
    """Whether an instruction writes the operand of this use."""
    op = use.operation
    return isinstance(op, QualifiedOp) and op.uses()[use.index][0].writes


def _verify_layout(value: SSAValue, noun: str) -> None:
    """Check that a buffer has sizes that memory can hold, and strides for them."""
    require(_is_forwards(value.type), f"offset and strides of {noun} are numbers from 0 on")
    require(_has_no_space(value), f"{noun} is in no memory space of its own")
    require(len(strides_of(value)) == rank_of(value), f"{noun} has a stride for each axis")
    verify_storable(value, noun)
    verify_storable(value, noun, max(extent_of(value), *strides_of(value), 0))


def _has_no_space(value: SSAValue) -> bool:
    """Whether the memory space of a buffer's type is none, or tells sizes that are known at run time only."""
    assert isinstance(value.type, MemRefType)
    return isinstance(value.type.memory_space, NoneAttr if has_static_shape(value) else NoneAttr | SizesAttr)


def _is_forwards(type_: Attribute) -> bool:
    """Whether offset and strides of a buffer's type are known, and none leads backwards."""
    assert isinstance(type_, MemRefType)
    if not isinstance(layout := type_.layout, StridedLayoutAttr):
        return isinstance(layout, NoneAttr)
    return all(isinstance(item, IntAttr) and item.data >= 0 for item in (layout.offset, *layout.strides))


@op_definition
class ViewOp(AddressOp, HasCanonicalizationPatternsInterface):
    """
    Another shape, strides and offset for memory that is already there (Glow's TensorView).

    The offset counts from the start of the allocation behind `source`, also where `source` is a view itself.

    ```mlir
    %1 = glow_low.view %0 : memref<1x28x28x64xf32, strided<[57600, 1920, 64, 1], offset: 1984>>
    ```
    """

    name = "glow_low.view"

    traits = traits_def(Pure(), KnownAttributes())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    @classmethod
    def of(cls, source: SSAValue, type_: Buffer, location: LocationAttr | None = None) -> ViewOp:
        """View `source` as `type_`."""
        return cls.create(operands=[source], result_types=[type_], location=location)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_low.canonicalization import VIEW_PATTERNS

        return VIEW_PATTERNS

    def verify_(self) -> None:
        self.verify_address("a view")


def root_of(value: SSAValue) -> SSAValue:
    """The allocation or weight behind a buffer, through all views and windows."""
    while True:
        owner: Any = value.owner
        if not _IS_ADDRESS[type(owner)]:
            return value
        value = owner.source


_IS_ADDRESS = subclasses_of(AddressOp)
"""Whether operations of a kind give other addresses of memory."""


@with_operand_accessors
@op_definition
class CopyOp(Instruction, HasCanonicalizationPatternsInterface):
    """Copy the elements of one buffer to another of the same shape (Glow's Copy)."""

    name = "glow_low.copy"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"target": Qualifier.OUT, "source": Qualifier.IN}

    target = operand_def(BUFFER)
    source = operand_def(BUFFER)

    kernel = opt_prop_def(StringAttr)
    partitions = opt_prop_def(DictionaryAttr)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_low.canonicalization import COPY_PATTERNS

        return COPY_PATTERNS

    def verify_(self) -> None:
        require(sizes_of(self.target) == sizes_of(self.source), "a copy's buffers have different shapes")
        require(element_of(self.target) == element_of(self.source), "a copy's buffers have different element types")


@with_operand_accessors
@op_definition
class FillOp(Instruction):
    """
    Set every element of all targets to `value` (Glow's Splat): the border of a pad, one buffer a side.

    ```mlir
    glow_low.fill @out %top, @out %bottom {value = 0.0 : f32}
    ```
    """

    name = "glow_low.fill"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"targets": Qualifier.OUT}

    targets = var_operand_def(BUFFER)
    value = prop_def(base(FloatAttr) | base(IntegerAttr))
    kernel = opt_prop_def(StringAttr)
    partitions = opt_prop_def(DictionaryAttr)

    def verify_(self) -> None:
        require(len(self.targets) > 0, "a fill needs a buffer")
        element = splat_element(self.value)
        require(all(element_of(target) == element for target in self.targets), f"a buffer is not of {element}")
