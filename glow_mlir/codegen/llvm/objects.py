"""
LLVM IR text to object files, through llvmlite.

The builder's kernels are final when they arrive: vectorised, unrolled and with their loops in the form that
code generation wants, so that IR passes only cost time. Whether a function wants passes all the same is its
own property, the string attribute `glow-passes`; see `PASS_LISTS`.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.dialects.target import Target

PASSES_ATTRIBUTE = "glow-passes"

PASS_LISTS: dict[str, tuple[str, ...]] = {
    "tidy": (
        "add_instruction_combine_pass",
        "add_new_gvn_pass",
        "add_simplify_cfg_pass",
        "add_dead_code_elimination_pass",
    ),
}
"""
The lists of passes a function may name in its attribute `glow-passes`: methods of llvmlite's pass manager.
"""

CODEGEN_LEVEL = 2


@functools.cache
def _llvm() -> Any:
    """Return `llvmlite.binding`, ready for this machine; loading takes long and a cached object needs none of it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def _initialize(architecture: str) -> None:
    """Make LLVM ready for the processors of an architecture; those of others take 10 MB, and are left out."""
    llvm = _llvm()
    if architecture != _architecture(llvm.get_process_triple()):
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def _architecture(triple: str) -> str:
    """Return the first part of a triple."""
    return triple.split("-", 1)[0]


def _machine(target: Target) -> Any:
    """Return a new target machine; small code model, position independent, so that objects link anywhere."""
    _initialize(_architecture(target.triple))
    description = _llvm().Target.from_triple(target.triple)
    return description.create_target_machine(
        cpu=target.cpu, features=target.features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="small"
    )


def _parse(text: str, target: Target, machine: Any) -> Any:
    """Return a verified module in a context of its own. Raises `EmissionError` with what LLVM says."""
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise EmissionError(f"LLVM refuses the module: {error}") from error
    return module


def _run_passes(module: Any, machine: Any) -> None:
    """Run over each function the passes that its attribute names."""
    llvm = _llvm()
    managers: dict[str, Any] = {}
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, tuning)
    marker = f'"{PASSES_ATTRIBUTE}"="'
    for function in module.functions:
        name = _pass_list(function, marker)
        if name is None:
            continue
        if name not in managers:
            managers[name] = llvm.create_new_function_pass_manager()
            for method in PASS_LISTS[name]:
                getattr(managers[name], method)()
        managers[name].run(function, builder)


def _pass_list(function: Any, marker: str) -> str | None:
    """Return the name in the attribute `glow-passes` of a function, or None."""
    for attribute in cast("list[bytes]", list(function.attributes)):
        text = attribute.decode()
        if text.startswith(marker):
            return text.removeprefix(marker).removesuffix('"')
    return None


def compile_text(text: str, target: Target) -> bytes:
    """
    Return the object file for a module in LLVM IR text.

    Raises `EmissionError` when LLVM does not accept the text.
    """
    machine = _machine(target)
    module = _parse(text, target, machine)
    if PASSES_ATTRIBUTE in text:
        _run_passes(module, machine)
    return bytes(machine.emit_object(module))


def assembly_text(text: str, target: Target) -> str:
    """
    Return the assembly of a module in LLVM IR text, for people and for tests. Raises as `compile_text` does.
    """
    machine = _machine(target)
    module = _parse(text, target, machine)
    if PASSES_ATTRIBUTE in text:
        _run_passes(module, machine)
    return cast("str", machine.emit_assembly(module))
