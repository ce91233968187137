"""Object files and assembly of a module in LLVM IR text, for a target: in this process, or in one of their own."""

from __future__ import annotations

from glow_mlir.codegen.llvm import foreign
from glow_mlir.codegen.llvm.foreign import ForeignEmissionError, emitted
from glow_mlir.codegen.llvm.machines import Machine, native_architecture
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.dialects.target import Target

_ABIS = {"hard": {"riscv64": "lp64d", "riscv32": "ilp32d"}, "soft": {"riscv64": "lp64", "riscv32": "ilp32"}}
"""How floats are passed → architecture → what LLVM calls that; Arm's triples say it themselves."""


def machine_of(target: Target) -> Machine:
    """A target as LLVM has to know it."""
    abi = _ABIS.get(target.float_abi, {}).get(target.architecture, "")
    return Machine(target.triple, target.cpu, target.features, target.relocation, target.code_model, abi)


def compile_text(text: str, target: Target) -> bytes:
    """
    Return the object file for a module in LLVM IR text.

    Raises `EmissionError` when LLVM does not accept the text, or cannot compile it for the target.
    """
    machine = machine_of(target)
    if machine.architecture != native_architecture():
        return _foreign(machine, text, "object_file")
    try:
        return machine.object_file(text)
    except RuntimeError as error:
        raise EmissionError(f"LLVM refuses the module: {error}") from error


def assembly_text(text: str, target: Target) -> str:
    """
    Return the assembly of a module in LLVM IR text, for people and for tests. Raises as `compile_text` does.
    """
    machine = machine_of(target)
    if machine.architecture != native_architecture():
        return _foreign(machine, text, "assembly").decode()
    try:
        return machine.assembly(text)
    except RuntimeError as error:
        raise EmissionError(f"LLVM refuses the module: {error}") from error


def stack_frames(text: str, target: Target) -> dict[str, int]:
    """
    Return the bytes that each function of a module in LLVM IR text takes of the stack; those that take none are left
    out. Raises as `compile_text` does.
    """
    machine = machine_of(target)
    try:
        return foreign.stack_frames(machine, text)
    except ForeignEmissionError as error:
        raise EmissionError(f"LLVM refuses the module for {machine.triple}: {error}") from error


def _foreign(machine: Machine, text: str, form: str) -> bytes:
    """What a process of its own emits."""
    try:
        return emitted(machine, text, form)
    except ForeignEmissionError as error:
        raise EmissionError(f"LLVM refuses the module for {machine.triple}: {error}") from error
