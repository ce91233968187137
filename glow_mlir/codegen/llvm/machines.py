"""
LLVM IR text to object files and assembly, through llvmlite.

The builder's kernels are final when they arrive: vectorised, unrolled and with their loops in the form that
code generation wants, so that IR passes only cost time. Whether a function wants passes all the same is its
own property, the string attribute `glow-passes`; see `PASS_LISTS`.

Imports nothing else of the compiler: a process that emits for other machines starts at once.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, cast

from glow_mlir.support.dataclass import dataclass

PASSES_ATTRIBUTE = "glow-passes"

PASS_LISTS: dict[str, tuple[str, ...]] = {
    "tidy": (
        "add_instruction_combine_pass",
        "add_new_gvn_pass",
        "add_simplify_cfg_pass",
        "add_dead_code_elimination_pass",
    ),
    "device": (
        "add_sroa_pass",
        "add_instruction_combine_pass",
        "add_new_gvn_pass",
        "add_simplify_cfg_pass",
        "add_instruction_combine_pass",
        "add_dead_code_elimination_pass",
    ),
}
"""
The lists of passes a function may name in its attribute `glow-passes`: methods of llvmlite's pass manager.
"""

ALWAYS_INLINE = "alwaysinline"

CODEGEN_LEVEL = 2

Form = Literal["object", "assembly", "data_layout"]
"""What can be asked for."""


@dataclass(frozen=True)
class Machine:
    """What LLVM has to know to make machine code: the processor in its words, and how the code is linked and called."""

    triple: str
    cpu: str = ""
    features: str = ""
    relocation: str = "pic"
    code_model: str = "small"
    abi: str = ""
    """The name of the calling convention, where the triple does not say it."""

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.split("-", maxsplit=1)[0]

    def emitted(self, text: str, form: Form) -> bytes:
        """
        What LLVM makes of a module in LLVM IR text: an object file, its assembly, or, if it makes an object file of
        it, the layout of data. Raises `RuntimeError` with what LLVM says of the text.
        """
        machine, module = self._prepared(text)
        if form == "assembly":
            return cast("str", machine.emit_assembly(module)).encode()
        made = bytes(machine.emit_object(module))
        return made if form == "object" else str(machine.target_data).encode()

    def _prepared(self, text: str) -> tuple[Any, Any]:
        """A target machine, and the verified module in a context of its own, behind the passes that it asks for."""
        _initialize(self.architecture)
        llvm = _llvm()
        machine = llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=CODEGEN_LEVEL,
            reloc=self.relocation,
            codemodel=self.code_model,
            abiname=self.abi,
        )
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = self.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        if PASSES_ATTRIBUTE in text:
            _run_passes(module, machine, ALWAYS_INLINE in text)
        return machine, module


@functools.cache
def _llvm() -> Any:
    """Return `llvmlite.binding`, ready for this machine; loading takes long and a cached object needs none of it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def native_architecture() -> str:
    """The first part of the triple of this process."""
    return cast("str", _llvm().get_process_triple()).split("-", maxsplit=1)[0]


@functools.cache
def _initialize(architecture: str) -> None:
    """Make LLVM ready for the processors of an architecture; those of others take 10 MB, and are left out."""
    if architecture != native_architecture():
        _llvm().initialize_all_targets()
        _llvm().initialize_all_asmprinters()


def _run_passes(module: Any, machine: Any, inlines: bool) -> None:
    """Run over each function the passes that its attribute names, behind what is always inlined."""
    llvm = _llvm()
    managers: dict[str, Any] = {}
    tuning = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, tuning)
    if inlines:
        inliner = llvm.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.run(module, builder)
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
