"""What a kernel is: which instructions it executes, what it wants prepared, and how it becomes `llvm` ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.modules import ModuleBuilder
from glow_mlir.codegen.target import Target
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.storage import Storage


@dataclass(frozen=True)
class Operand:
    """One operand inside a kernel: the address of its first element, and its static type."""

    pointer: Value
    value: SSAValue

    @property
    def shape(self) -> Shape:
        """Sizes of the axes."""
        return shape_of(self.value)

    @property
    def strides(self) -> Shape:
        """Strides of the axes, in elements."""
        return strides_of(self.value)

    @property
    def element(self) -> Attribute:
        """The element type, with signedness."""
        return element_of(self.value)


@dataclass(frozen=True)
class KernelCall:
    """What a kernel gets to emit one function: a builder, the instruction, and its operands by name."""

    b: Builder
    module: ModuleBuilder
    op: Instruction
    operands: Mapping[str, Sequence[Operand]]

    @property
    def target(self) -> Target:
        """The machine that is compiled for."""
        return self.module.target

    def one(self, name: str) -> Operand:
        """The operand of that name."""
        return self.operands[name][0]

    def maybe(self, name: str) -> Operand | None:
        """The optional operand of that name, or `None`."""
        found = self.operands.get(name, ())
        return found[0] if found else None

    def many(self, name: str) -> Sequence[Operand]:
        """The variadic operand of that name."""
        return self.operands.get(name, ())

    @property
    def result(self) -> Operand:
        """The operand `result`."""
        return self.one("result")


class Kernel(ABC):
    """
    Executes some instructions on a CPU.

    A kernel emits one function for each distinct instruction (types, properties and body); its arguments are the
    addresses of the operands. Heavy inner loops belong into functions shared by `ModuleBuilder.shared`.
    """

    name: ClassVar[str]
    passes: ClassVar[str] = ""
    """LLVM IR passes for the function, a key of `codegen.llvm.objects.PASS_LISTS`."""

    @abstractmethod
    def accepts(self, op: Operation) -> bool:
        """
        Whether the kernel executes `op`, an operator or its instruction.

        Operators are asked before lowering, so that what no kernel accepts is lowered.
        """

    def prepare(self, op: Instruction, storage: Storage, target: Target) -> None:
        """Set tiles, packing and scratch operands on an instruction that this kernel was selected for."""

    @abstractmethod
    def emit(self, call: KernelCall) -> None:
        """Emit the function's body."""


def kind_of(op: Operation) -> Any:
    """The operator class of an operator or of its instruction; the class itself for other instructions."""
    return getattr(op, "OPERATOR", type(op))
