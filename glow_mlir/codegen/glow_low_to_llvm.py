"""`glow-low-to-llvm`: from allocated instructions to the `llvm` dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from glow_mlir.codegen.builder import Builder
from glow_mlir.codegen.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.modules import ModuleBuilder, Param
from glow_mlir.codegen.target import target_named
from glow_mlir.codegen.types import i8, i32, i64, ptr
from glow_mlir.codegen.value import Value
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import AllocOp, DeallocOp, FuncOp, ViewOp, WeightOp, offset_of, root_of
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.errors import CompilerBugError
from glow_mlir.registry import KERNELS
from glow_mlir.transforms.rewriting import low_functions


@dataclass(frozen=True)
class GlowLowToLlvmPass(ModulePass):
    """
    Turn each allocated function into an entry `int32_t name(constants, bindings, activations, parallel)` of the `llvm`
    dialect, and each distinct instruction into a function that the entry calls.

    Storage leaves the module: its bytes are in the constants region, its types in the manifest. With `profile` the
    entry stores the cycle counter around each instruction, to the binding behind the last.
    """

    name = "glow-low-to-llvm"

    target: str = "host"
    profile: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        builder = ModuleBuilder(target_named(self.target))
        for function in low_functions(op):
            FunctionEmission(function, builder, self.profile).run()
        op.attributes.clear()
        block = op.body.block
        for old in list(block.ops):
            block.erase_op(old, safe_erase=False)
        for new in list(builder.module.body.block.ops):
            new.detach()
            block.add_op(new)


@dataclass
class FunctionEmission:
    """Emission of one entry."""

    function: FuncOp
    module: ModuleBuilder
    profile: bool
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    pointers: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])

    def run(self) -> None:
        """Emit the entry and the functions of its instructions."""
        calls = [
            (op, self._kernel_function(op))
            for op in self.function.block.ops
            if isinstance(op, Instruction) and not isinstance(op, DeallocOp)
        ]
        parameters = [Param(ptr, noalias=False)] * 4
        with self.module.function(self.function.sym_name.data, parameters, result=i32) as (b, arguments):
            self._emit_pointers(b, *arguments[:3])
            for position, (op, callee) in enumerate(calls):
                self._stamp(b, arguments[1], position)
                b.call(callee, [self._pointer(b, value) for _, _, value in op.named_uses()])
            self._stamp(b, arguments[1], len(calls))
            b.give_back(b.constant(0, i32))

    def _emit_pointers(self, b: Builder, constants: Value, bindings: Value, activations: Value) -> None:
        """Addresses of all allocations and weights, in front of the first call."""
        for op in self.function.block.ops:
            if isinstance(op, AllocOp):
                self.pointers[op.result] = activations.at(_offset(op.offset), i8)
            elif isinstance(op, WeightOp):
                assert op.region is not None
                if op.region.data == "constants":
                    self.pointers[op.result] = constants.at(_offset(op.offset), i8)
                else:
                    self.pointers[op.result] = bindings.at(_offset(op.offset), ptr).load(ptr)

    def _pointer(self, b: Builder, value: SSAValue) -> Value:
        """The address of a buffer's first element."""
        pointer = self.pointers[root_of(value)]
        if not isinstance(value.owner, ViewOp):
            return pointer
        return pointer.at(offset_of(value) * byte_width(element_of(value)), i8)

    def _stamp(self, b: Builder, bindings: Value, position: int) -> None:
        if self.profile:
            stamps = bindings.at(len(self.function.binding_names), ptr).load(ptr)
            cycles = b.intrinsic("llvm.readcyclecounter", [], i64)
            stamps.at(position, i64).store(cycles)

    def _kernel_function(self, op: Instruction) -> str:
        """The function of one instruction; instructions that are equal but for their buffers share it."""
        kernel = self._kernel(op)

        def build(name: str) -> None:
            uses = list(op.named_uses())
            with self.module.function(name, [ptr] * len(uses), internal=True, passes=kernel.passes) as (b, arguments):
                operands: dict[str, list[Operand]] = {}
                for (operand, _, value), pointer in zip(uses, arguments, strict=True):
                    operands.setdefault(operand, []).append(Operand(pointer, value))
                kernel.emit(KernelCall(b, self.module, op, operands))
                b.give_back()

        written = shape_of(op.outputs()[0]) if op.outputs() else ()
        readable = ".".join((kernel.name, "x".join(map(str, written)) or "scalar"))
        return self.module.shared((kernel.name, op.name, signature(op)), build, readable)

    def _kernel(self, op: Instruction) -> Kernel:
        name = op.properties.get("kernel")
        chosen = getattr(name, "data", "")
        if chosen not in self.kernels:
            make = KERNELS.get(chosen)
            if make is None:
                raise CompilerBugError(f"{op.name} has no kernel '{chosen}'", hint="run 'select' first")
            self.kernels[chosen] = make()
        return self.kernels[chosen]


def _offset(attribute: object) -> int:
    if not isinstance(attribute, IntegerAttr):
        raise CompilerBugError("a buffer has no place", hint="run the pass 'allocate' first")
    return attribute.value.data


def signature(op: Instruction) -> str:
    """What two instructions that may share a function have in common: operand types, properties and body."""
    stream = StringIO()
    printer = Printer(stream)
    for name, _, value in op.named_uses():
        stream.write(f"{name}:")
        printer.print_attribute(value.type)
    for name, attribute in sorted(op.properties.items()):
        stream.write(f" {name}=")
        printer.print_attribute(attribute)
    for region in op.regions:
        printer.print_region(region)
    return stream.getvalue()
