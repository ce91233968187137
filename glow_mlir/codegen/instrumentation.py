"""Calls of a caller's observer, before and after each instruction of an entry (Glow's IRInstrument)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i8, i32, i64, index_type, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.constant_data import Constant, ConstantData, struct, word
from glow_mlir.codegen.selection.kernel import extents_at
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import element_of, largest_shape, sizes_of
from glow_mlir.ir.locations import location_name
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Sizes, are_numbers

QUALIFIERS = (Qualifier.IN, Qualifier.OUT, Qualifier.INOUT, Qualifier.SCRATCH)
"""The ways in which an instruction uses a buffer, by number."""

BEFORE, AFTER, CONTEXT = range(3)
"""The fields of a `glow_observer`."""

_COUNTERS = {
    "x86_64": "llvm.readcyclecounter",
    "aarch64": "llvm.readsteadycounter",
    "riscv64": "llvm.readsteadycounter",
}
"""Architecture → the intrinsic that counts cycles, or clock ticks where programs may not read cycles."""

_WITH_CYCLE_REGISTER = ("thumbv7m", "thumbv7em", "thumbv8.1m.main", "thumbv8m.main")
_CYCLE_REGISTER = 0xE0001004
"""The address of DWT->CYCCNT on Cortex-M of these architectures; it counts once a program has enabled it."""

_OBSERVE = "observe"


@dataclass
class Instrumentation:
    """
    Calls of the observer of an entry.

    `addresses` has space for the addresses of buffers, `extents` for the sizes of all their axes.
    """

    module: ModuleBuilder
    data: ConstantData
    observer: Value
    addresses: Value
    extents: Value
    symbols: Mapping[str, Value]
    """The values of the symbols in sizes that are known so far, by name."""
    count: int = 0

    @contextmanager
    def around(self, b: Builder, op: Instruction, pointers: Sequence[Value]) -> Generator[None]:
        """Report an instruction on these addresses, before and after the code that is built inside."""
        record = self._record(op)
        sizes = tuple(size for _, _, value in op.named_uses() for size in sizes_of(value))
        for when in (BEFORE, AFTER):
            # A callback may overwrite the arrays; a kernel has its addresses in registers.
            for position, pointer in enumerate(pointers):
                self.addresses.at(position, ptr).store(pointer)
            known = [b.symbol(record), self.addresses, self._extents(b, sizes), b.index(when)]
            b.call(_observe(self.module), [self.observer, *known])
            if when == BEFORE:
                yield

    def _extents(self, b: Builder, sizes: Sizes) -> Value:
        """The address of the sizes of all axes; null if the record has them."""
        if are_numbers(sizes):
            return b.null()
        for position, extent in enumerate(extents_at(sizes, self.symbols)):
            self.extents.at(position, i64).store(b.cast(b.index(extent), i64))
        return self.extents

    def _record(self, op: Instruction) -> str:
        """The name of the `glow_instruction` that describes an instruction."""
        fields = [
            self.data.text(location_name(op.location)),
            self.data.text(op.name.split(".")[1]),
            word(self.count),
            word(len(list(op.named_uses()))),
            self.data.table([self._buffer(*use) for use in op.named_uses()]),
        ]
        self.count += 1
        return self.data.single(struct(fields))

    def _buffer(self, name: str, qualifier: Qualifier, value: SSAValue) -> Constant:
        """A `glow_buffer`."""
        shape, strides = largest_shape(value), strides_of(value)
        fields = [
            self.data.text(name),
            self.data.text(numpy_dtype(element_of(value)).name),
            word(QUALIFIERS.index(qualifier)),
            word(len(shape)),
            self.data.table([(i64, IntegerAttr(extent, i64)) for extent in shape]),
            self.data.table([(i64, IntegerAttr(stride, i64)) for stride in strides]),
        ]
        return struct(fields)


def _observe(module: ModuleBuilder) -> str:
    """The function that calls a registered callback, if there is one."""
    if _OBSERVE not in module.signatures:
        parameters = [ptr, ptr, ptr, ptr, index_type]
        with define_function(module, _OBSERVE, parameters, internal=True, inline=False) as (b, arguments):
            observer, record, addresses, extents, when = arguments
            with b.when(b.address(observer).ne(0)):
                callback = observer.at(when, ptr).load(ptr)
                with b.when(b.address(callback).ne(0)):
                    context = observer.at(CONTEXT, ptr).load(ptr)
                    b.call_pointer(callback, [context, record, addresses, extents, cycles(b)])
    return _OBSERVE


def cycles(b: Builder) -> Value:
    """The counter of cycles, or of clock ticks, as 64 bits; 0 if the target has none."""
    architecture = b.target.architecture
    if architecture in _COUNTERS:
        return b.intrinsic(_COUNTERS[architecture], [], i64)
    if architecture.startswith(_WITH_CYCLE_REGISTER):
        return b.cast(b.null().at(_CYCLE_REGISTER, i8).load(i32), i64, signed=False)
    return b.constant(0, i64)
