"""Object files and assembly of a module in LLVM IR text, for a target: in this process, or in a separate one."""

from __future__ import annotations

import re

from glow_mlir.codegen.llvm.foreign import Emission, ForeignEmissionError, emitted
from glow_mlir.codegen.llvm.machines import Form, Machine, native_architecture
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.dialects.target import Target

_ABIS = {"hard": {"riscv64": "lp64d", "riscv32": "ilp32d"}, "soft": {"riscv64": "lp64", "riscv32": "ilp32"}}
"""How floats are passed → architecture → LLVM's name of that convention; Arm's triples imply it."""


def machine_of(target: Target) -> Machine:
    """LLVM's settings for a target."""
    abi = _ABIS.get(target.linking.float_abi, {}).get(target.architecture, "")
    return Machine(
        target.triple, target.cpu, target.features, target.linking.relocation, target.linking.code_model, abi
    )


def compile_text(text: str, target: Target) -> bytes:
    """
    Return the object file for a module in LLVM IR text.

    Raises `EmissionError` when LLVM does not accept the text, or cannot compile it for the target.
    """
    return _emission(text, target, "object").data


def assembly_text(text: str, target: Target) -> str:
    """
    Return the assembly of a module in LLVM IR text, for people and for tests. Raises as `compile_text` does.
    """
    return _emission(text, target, "assembly").data.decode()


def stack_frames(text: str, target: Target) -> dict[str, int]:
    """
    Return the size of each function's stack frame, in bytes, of a module in LLVM IR text; functions without one are
    left out. Raises as `compile_text` does.
    """
    # LLVM reports frames as warnings on stderr, which can be read only from another process.
    asking = _ATTRIBUTES.sub(r'\g<0> "warn-stack-size"="0"', text)
    messages = _emission(asking, target, "object", apart=True).messages
    return {name: int(size) for size, name in _FRAME.findall(messages)}


_ATTRIBUTES = re.compile(r"^attributes #\d+ = \{", re.MULTILINE)
_FRAME = re.compile(r"stack frame size \((\d+)\) exceeds limit \(0\) in function '([^']+)'")


def _emission(text: str, target: Target, form: Form, apart: bool = False) -> Emission:
    """Compile a module: in this process, or in a separate one for other architectures or if `apart`."""
    machine = machine_of(target)
    try:
        if apart or machine.architecture != native_architecture():
            return emitted(machine, text, form)
        return Emission(machine.emitted(text, form), "")
    except (RuntimeError, ForeignEmissionError) as error:
        raise EmissionError(f"LLVM refuses the module for {machine.triple}: {error}") from error
