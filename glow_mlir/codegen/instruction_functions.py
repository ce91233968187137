"""The function of one instruction, shared by equal instructions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter

import numpy as np
from xdsl.ir import Attribute, SSAValue

from glow_mlir.backends.interface import Backend
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i32, index_type, ptr
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.constants.index_ranges import failure_of
from glow_mlir.dialects.element_types import storage_of
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.scalar_parameters import (
    has_parameters,
    parameters,
    scalar,
    shared_structure,
    whole_number,
)
from glow_mlir.dialects.shapes import Shape, element_of, largest_shape, sizes_of
from glow_mlir.dialects.structure import blocks_of
from glow_mlir.dialects.symbol_binding import used_symbols
from glow_mlir.errors import CompilerBugError
from glow_mlir.support.symbols import Quotient, Sizes


def instruction_function(module: ModuleBuilder, kernel: Kernel, op: Instruction, cancellable: bool = False) -> str:
    """
    The name of the function of one instruction, which returns 1 if the instruction fails; instructions that differ only
    in their buffers share it.

    It takes the addresses of the operands, the values of the symbols in `symbols_of` and, if it is `cancellable`, the
    address of the cancellation flag.
    """
    may_fail = bool(failure_of(op))

    def build(name: str) -> None:
        names, count = symbols_of(op), len(list(op.named_uses()))
        parameters = [*[ptr] * count, *[index_type] * len(names), *[ptr] * cancellable]
        result = i32 if may_fail else None
        function = define_function(
            module,
            name,
            parameters,
            result,
            internal=True,
            passes=kernel.passes,
            takes_scalars=takes_scalars(op),
            names=[*[called for called, _, _ in op.named_uses()], *names, *["cancelled"] * cancellable],
        )
        with function as (b, arguments):
            failed = not_failed(b) if may_fail else None
            symbols = dict(zip(names, arguments[count : count + len(names)], strict=True))
            quotients: dict[Quotient, Index] = {}
            operands = operands_of(op, arguments[:count], symbols, quotients)
            cancelled = arguments[-1] if cancellable else None
            kernel.emit(
                KernelCall(
                    b,
                    module,
                    op,
                    operands,
                    symbols=symbols,
                    failed=failed,
                    quotients=quotients,
                    cancelled=cancelled,
                )
            )
            b.give_back(None if failed is None else failed.load(i32))

    return module.shared((cancellable, signature(kernel, op)), build, readable_name(kernel, op))


def takes_scalars(op: Instruction) -> bool:
    """Whether the function of an instruction gets scalar parameters of its bodies at run time."""
    return any(map(has_parameters, blocks_of(op.regions)))


def scalar_table(module: ModuleBuilder, op: Instruction) -> str:
    """The name of the table of an instruction's scalar parameters, as `Builder.scalar` reads it: two i32 for each."""
    return module.table(np.array(scalar_words(op), np.int32))


def scalar_words(op: Instruction) -> list[int]:
    """An instruction's scalar parameters, as `Builder.scalar` reads them: two i32 for each."""
    return [word for constant in parameters(op) for word in _words(constant.value)]


def _words(value: Attribute) -> tuple[int, int]:
    """The bits of a scalar parameter, and the whole number that it is; 0 if it is none."""
    found = scalar(value)
    assert found is not None
    type_, number = found
    if type_ == i32:
        return int(number), int(number)
    return int(np.float32(number).view(np.int32)), whole_number(value) or 0


def not_failed(b: Builder) -> Value:
    """The address of an instruction's failure flag, which is not set yet."""
    flag = b.stack(i32, 1)
    flag.store(b.constant(0, i32))
    return flag


def operands_of(
    op: Instruction, pointers: Sequence[Value], symbols: Mapping[str, Value], quotients: dict[Quotient, Index]
) -> dict[str, list[Operand]]:
    """
    The operands of an instruction by name, at these addresses, for these values of symbols.

    The quotients in their sizes are computed once, and kept in `quotients`.
    """
    operands: dict[str, list[Operand]] = {}
    for (name, _, value), pointer in zip(op.named_uses(), pointers, strict=True):
        operand = Operand(pointer, value, symbols=symbols, quotients=quotients)
        if symbols:
            _ = operand.extents  # Computed before all branches.
        operands.setdefault(name, []).append(operand)
    return operands


def private_to(worker: Value, kernel: Kernel, op: Instruction, operands: Mapping[str, list[Operand]]) -> None:
    """Replace each @scratch that workers have for themselves by that of one worker."""
    for number in kernel.private(op):
        operands["scratch"][number] = operands["scratch"][number].of_worker(worker)


def symbols_of(op: Instruction) -> list[str]:
    """The names of the symbols in sizes that an instruction uses, in operands or properties, in order."""
    return sorted(symbol.name for symbol in used_symbols(op))


def kernel_of(op: Instruction, backend: Backend) -> Kernel:
    """The kernel of a selected instruction; raises `CompilerBugError` if there is none."""
    kernel = backend.kernels.get(op.kernel_name)
    if kernel is None:
        raise CompilerBugError(f"{op.name} has no kernel '{op.kernel_name}'", hint="run 'select' first")
    return kernel


def readable_name(kernel: Kernel, op: Instruction) -> str:
    """The readable name of an instruction's function."""
    written = largest_shape(op.outputs()[0]) if op.outputs() else ()
    name = op.name.partition(".")[2] if kernel.NAMED_BY_INSTRUCTION else kernel.name
    return ".".join((name, "x".join(map(str, written)) or "scalar"))


def signature(kernel: Kernel, op: Instruction) -> Hashable:
    """
    The key of instructions that may share a function: kernel, operands, properties and bodies, and whether they may
    fail.

    Offsets are left out, since they are in the addresses of operands; so are strides along axes of size 1.
    """
    operands = tuple((name, *_read_of(value, kernel.READS_ZERO_POINTS)) for name, _, value in op.named_uses())
    properties = tuple(sorted(op.properties.items(), key=itemgetter(0)))
    return kernel.name, op.name, operands, properties, bool(failure_of(op)), shared_structure(blocks_of(op.regions))


def _read_of(value: SSAValue, zero_points: bool) -> tuple[Sizes, Shape, Attribute]:
    """The properties of an operand on which code depends."""
    sizes, element = sizes_of(value), element_of(value)
    strides = tuple(0 if size == 1 else stride for size, stride in zip(sizes, strides_of(value), strict=True))
    return sizes, strides, element if zero_points else storage_of(element)
