"""
LLVM IR text to object files and assembly, through llvmlite.

The builder's kernels need no optimization: they are vectorized and unrolled, and their loops have the form that code
generation needs, so that IR passes would only cost time. A function that needs passes anyway names them in the string
attribute `glow-passes`; see `PASS_LISTS`.

The module imports nothing else of the compiler, so that a process that emits for other machines starts at once.
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
"""The form of the output."""


@dataclass(frozen=True)
class Machine:
    """LLVM's settings for machine code: the processor, in its terms, and how the code is linked and called."""

    triple: str
    cpu: str = ""
    features: str = ""
    relocation: str = "pic"
    code_model: str = "small"
    abi: str = ""
    """The name of the calling convention, if the triple does not imply it."""

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.split("-", maxsplit=1)[0]

    def emitted(self, text: str, form: Form) -> bytes:
        """
        Compile a module in LLVM IR text to an object file, to assembly or, if an object file can be made, to the data
        layout. Raises `RuntimeError` with LLVM's message.
        """
        machine, module = self._prepared(text)
        if form == "assembly":
            return cast("str", machine.emit_assembly(module)).encode()
        made = bytes(machine.emit_object(module))
        return made if form == "object" else str(machine.target_data).encode()

    def _prepared(self, text: str) -> tuple[Any, Any]:
        """A target machine, and the verified module in its own context, after the passes that it asks for."""
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
    """Return `llvmlite.binding`, ready for this machine; loading is slow, and a cached object does not need it."""
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
    """Initialize LLVM for an architecture. All foreign ones together take 10 MB, so they are left out if not needed."""
    if architecture != native_architecture():
        _llvm().initialize_all_targets()
        _llvm().initialize_all_asmprinters()


def _run_passes(module: Any, machine: Any, inlines: bool) -> None:
    """Run on each function the passes that its attribute names, after inlining functions that are always inlined."""
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
