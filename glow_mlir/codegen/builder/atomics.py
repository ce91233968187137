"""The part of the builder for threads: atomic accesses, calls through pointers, the pause of a waiting loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.dialects.llvm import (
    CallingConventionAttr,
    CallIntrinsicOp,
    CallOp,
    ExtractValueOp,
    LLVMStructType,
    TailCallKind,
    TailCallKindAttr,
)
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.memory import Memory
from glow_mlir.codegen.builder.types import ALIGNMENTS, NO_FAST_MATH, i1, i32, i32_array, i64
from glow_mlir.codegen.builder.value import Number, Value
from glow_mlir.dialects.llvm_ops.access import ordering_attr
from glow_mlir.dialects.llvm_ops.atomics import ATOMIC_BINARY, AtomicCmpXchgOp, AtomicRMWOp
from glow_mlir.dialects.llvm_ops.memory import LoadOp, StoreOp
from glow_mlir.xdsl_patches.creation import created

PAUSES = {"x86_64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
"""Architecture → the intrinsic that tells the processor that a loop is waiting, and its arguments."""


class Atomics(Memory):
    """Emits accesses that several threads may make at once; the orderings are those of LLVM."""

    def atomic_load(self, pointer: Value, type_: Attribute, ordering: str = "acquire") -> Value:
        """Return the integer or pointer in memory at `pointer`, aligned to its size."""
        return self.emit(LoadOp, (pointer,), type_, {**_aligned(type_), "ordering": ordering_attr(ordering)})

    def atomic_store(self, value: Number, pointer: Value, type_: Attribute, ordering: str = "release") -> None:
        """Write an integer or pointer to memory at `pointer`, aligned to its size."""
        properties = {**_aligned(type_), "ordering": ordering_attr(ordering)}
        self.perform(StoreOp, (self.as_value(value, type_), pointer), properties)

    def atomic(
        self, operation: str, pointer: Value, value: Number, type_: Attribute, ordering: str = "seq_cst"
    ) -> Value:
        """Replace the integer at `pointer` by `operation` (`add`, `xchg`, …) of it and `value`; return the old one."""
        properties = {
            "bin_op": IntegerAttr(ATOMIC_BINARY.index(operation), i64),
            "ordering": ordering_attr(ordering),
        }
        return self.emit(AtomicRMWOp, (pointer, self.as_value(value, type_)), type_, properties)

    def exchange_if(self, pointer: Value, expected: Value, value: Value) -> Value:
        """Store `value` if memory holds `expected`, in one atomic step; return whether it did, as an i1."""
        found = self.emit(
            AtomicCmpXchgOp,
            (pointer, expected, value),
            LLVMStructType.from_type_list([value.type, i1]),
            {"success_ordering": ordering_attr("acq_rel"), "failure_ordering": ordering_attr("monotonic")},
        )
        return self.emit(ExtractValueOp, (found,), i1, {"position": DenseArrayBase.from_list(i64, [1])})

    def call_pointer(
        self, function: Value, arguments: Sequence[Value], result: Attribute | None = None
    ) -> Value | None:
        """Call the function at an address, in the C calling convention; return its result, or None if it has none."""
        op = created(
            CallOp,
            [value.ssa for value in (function, *arguments)],
            () if result is None else (result,),
            {
                "CConv": CallingConventionAttr("ccc"),
                "TailCallKind": TailCallKindAttr(TailCallKind.NONE),
                "op_bundle_sizes": i32_array(),
                "operandSegmentSizes": i32_array(1 + len(arguments), 0),
                **NO_FAST_MATH,
            },
        )
        self.block.add_op(op)
        return None if result is None else self.wrap(op)

    def pause(self) -> None:
        """Tell the processor that this loop waits for another one."""
        found = PAUSES.get(self.target.triple.split("-")[0])
        if found is None:
            return
        name, arguments = found
        properties: dict[str, Attribute] = {
            "intrin": StringAttr(name),
            "op_bundle_sizes": i32_array(),
            "operandSegmentSizes": i32_array(len(arguments), 0),
            **NO_FAST_MATH,
        }
        self.perform(CallIntrinsicOp, [self.constant(argument, i32) for argument in arguments], properties)


def _aligned(type_: Attribute) -> dict[str, Attribute]:
    """The alignment of an atomic access: the size of its type. Pointers, of at most 8 bytes, use 8."""
    return {"alignment": ALIGNMENTS[4 if type_ == i32 else 8]}
