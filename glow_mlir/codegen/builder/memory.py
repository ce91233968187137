"""The part of the builder that accesses memory: addresses, loads, stores, masks, prefetch, stack buffers."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr
from xdsl.dialects.llvm import GEP_USE_SSA_VAL, AddressOfOp, AllocaOp
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.lanes import Lanes
from glow_mlir.codegen.builder.types import (
    ALIGNMENTS,
    array,
    i1,
    i8,
    i32,
    i32_array,
    i64,
    integer_of_width,
    pointer_in,
    ptr,
    type_info,
    vector,
)
from glow_mlir.codegen.builder.value import Index, Number, Value
from glow_mlir.dialects.llvm_ops import memory
from glow_mlir.dialects.llvm_ops.access import present
from glow_mlir.dialects.llvm_ops.values import AddrSpaceCastOp
from glow_mlir.xdsl_patches.creation import created

STACK_SPACES: Mapping[str, int] = {"nvptx": 0, "amdgpu": 5, "spirv": 0}
"""Family of devices → the address space of the stack."""

_INBOUNDS = IntegerAttr(memory.GEP_FLAGS["inbounds"], i32)
_DYNAMIC_INDEX = i32_array(GEP_USE_SSA_VAL)
_NOT_ATOMIC: Mapping[str, Attribute] = {"ordering": IntegerAttr(0, i64)}
_PREFETCH_LEVELS = {1: 3, 2: 2, 3: 1}
_HALF = 16


class Memory(Lanes):
    """
    Emits accesses to memory.

    Every access names its alignment: without one LLVM assumes that of the whole vector. The default is the
    size of one element, which any array has. An i1 is one byte in memory, 0 or 1.
    """

    def offset(self, pointer: Value, index: Number, element: Attribute) -> Value:
        if isinstance(index, float):
            raise TypeError("an address needs an integer index")
        if index == 0:
            return pointer
        properties: dict[str, Attribute] = {
            "rawConstantIndices": _DYNAMIC_INDEX,
            "elem_type": i8 if type_info(element).bits == 1 else element,
            "noWrapFlags": _INBOUNDS,
        }
        if isinstance(index, int) and -(2**31) < index < 2**31:
            properties["rawConstantIndices"] = i32_array(index)
            return self.emit(memory.GEPOp, (pointer,), pointer.type, properties)
        return self.emit(memory.GEPOp, (pointer, self.index(index)), pointer.type, properties)

    def load(self, pointer: Value, type_: Attribute, align: int | None = None, *, nontemporal: bool = False) -> Value:
        """As `Operators.load`; `nontemporal` bypasses the caches."""
        info = type_info(type_)
        properties = _access(align or info.bytes_in_memory, nontemporal)
        if info.bits > 1:
            return self.emit(memory.LoadOp, (pointer,), type_, properties)
        return self.cast(self.emit(memory.LoadOp, (pointer,), vector(i8, info.lanes), properties), i1)

    def store(
        self,
        value: Number,
        pointer: Value,
        align: int | None = None,
        *,
        type_: Attribute | None = None,
        nontemporal: bool = False,
    ) -> None:
        """As `Operators.store`; a Python number needs `type_`, and `nontemporal` bypasses the caches."""
        if not isinstance(value, Value):
            if type_ is None:
                raise TypeError("storing a Python number needs its type")
            value = self.constant(value, type_)
        if value.info.bits == 1:
            value = self.cast(value, i8)
        self.perform(memory.StoreOp, (value, pointer), _access(align or value.info.bytes_in_memory, nontemporal))

    def mask(self, count: Index, lanes: int, bits: int = 32) -> Value:
        """
        Return the mask of the first `count` lanes.

        `bits` is the width of the elements to be masked: compared at that width, the mask already has the form
        that the instructions for them need.
        """
        width = integer_of_width(max(8, bits))
        if isinstance(count, int):
            return self.constant([lane < count for lane in range(lanes)], vector(i1, lanes))
        limit = self.splat(self.cast(count, width), lanes)
        return self.compare("lt", self.iota(width, lanes), limit)

    def load_masked(
        self,
        pointer: Value,
        type_: Attribute,
        mask: Value,
        otherwise: Number = 0,
        align: int | None = None,
    ) -> Value:
        """Load the lanes of a vector that are in `mask`; the others are `otherwise`."""
        info = type_info(type_)
        if info.bits == 1:
            read = self.load_masked(pointer, vector(i8, info.lanes), mask, otherwise, align)
            return self.cast(read, i1)
        if info.is_float and info.bits == _HALF:
            # Without instructions for such masks, LLVM splits the vector, and would convert lanes to f32 and back.
            bits = self.bits_of(self.as_value(otherwise, type_))
            return self.bitcast(self.load_masked(pointer, bits.type, mask, bits, align), info.element)
        properties = {"alignment": IntegerAttr(align or info.bytes_in_memory, i32)}
        operands = (pointer, mask, self.as_value(otherwise, type_))
        return self.emit(memory.MaskedLoadOp, operands, type_, properties)

    def store_masked(self, value: Value, pointer: Value, mask: Value, align: int | None = None) -> None:
        """Write the lanes of a vector that are in `mask`."""
        if value.info.bits == 1:
            value = self.cast(value, i8)
        if value.info.is_float and value.info.bits == _HALF:
            value = self.bits_of(value)
        properties = {"alignment": IntegerAttr(align or value.info.bytes_in_memory, i32)}
        self.perform(memory.MaskedStoreOp, (value, pointer, mask), properties)

    def prefetch(self, pointer: Value, *, write: bool = False, level: int = 1) -> None:
        """Hint that the cache line at `pointer` is wanted in the cache of `level` (1, 2 or 3)."""
        properties = {
            "rw": IntegerAttr(int(write), i32),
            "hint": IntegerAttr(_PREFETCH_LEVELS[level], i32),
            "cache": IntegerAttr(1, i32),
        }
        self.perform(memory.PrefetchOp, (pointer,), properties)

    def stack(self, element: Attribute, count: int, align: int = 64) -> Value:
        """Return the address of a stack buffer that lives as long as the call; it is allocated once, at the top."""
        space = STACK_SPACES.get(self.target.family)
        if space is not None:  # Device backends need one array of a known size.
            element, count = array(element, count), 1
        properties = {"alignment": ALIGNMENTS[align], "elem_type": element}
        op = created(AllocaOp, (self.constant(count, i64).ssa,), (pointer_in(space or 0),), properties)
        self.constants.append(op)
        if not space:
            return self.wrap(op)
        generic = created(AddrSpaceCastOp, (op.results[0],), (ptr,))
        self.constants.append(generic)
        return self.wrap(generic)

    def symbol(self, name: str, space: int = 0) -> Value:
        """Return the address of a global of the module, in the given address space."""
        return self.emit(AddressOfOp, (), pointer_in(space), {"global_name": SymbolRefAttr(name)})


def _access(align: int, nontemporal: bool) -> Mapping[str, Attribute]:
    return _NONTEMPORAL_ACCESS[align] if nontemporal else _ACCESS[align]


_ACCESS = {align: {"alignment": attr, **_NOT_ATOMIC} for align, attr in ALIGNMENTS.items()}
_NONTEMPORAL_ACCESS = {align: present(nontemporal=True, **access) for align, access in _ACCESS.items()}
