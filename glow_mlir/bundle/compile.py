"""Compile modules of models to a bundle: one module, one object, one region of constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeGuard, cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from glow_mlir.bundle.exchanged_quantized_values import QuantizationParameters, exchanged_quantization
from glow_mlir.bundle.interface import BundleInterface, ObjectForm
from glow_mlir.bundle.layout import BindingKey, BundleLayout
from glow_mlir.bundle.names import distinct
from glow_mlir.bundle.report import MemoryReport
from glow_mlir.codegen.build import build_artifact
from glow_mlir.codegen.glow_low_to_scf import GlowLowToScfPass
from glow_mlir.codegen.llvm import elf
from glow_mlir.codegen.scf_to_llvm import ScfToLlvmPass
from glow_mlir.codegen.selection.tables import TABLES
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, PlaceholderOp, StorageOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import WeightOp, byte_size
from glow_mlir.dialects.shapes import element_of
from glow_mlir.driver.compiler import Compilation, stage_of
from glow_mlir.driver.pipelines import ALLOCATED, MACHINE_CODE, STAGE
from glow_mlir.errors import OptionError, OutOfMemoryError
from glow_mlir.ir.entries import entries_of, packing_functions, placeholders_of
from glow_mlir.ir.locations import short_location_names
from glow_mlir.ir.registry import kernels_of
from glow_mlir.ir.rewriting import functions, low_functions
from glow_mlir.ir.text import module_text
from glow_mlir.ir.traversal import own_operations
from glow_mlir.pictures.memory import function_memory
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.bundle import ENTRY_SUFFIX
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Bundle:
    """A compiled bundle: its artifact, its layout, and the text of the module after the stage `allocated`."""

    artifact: Artifact
    layout: BundleLayout
    version: int
    text: str
    form: ObjectForm
    report: MemoryReport
    largest: list[str]
    """The largest constants, as text."""

    @property
    def name(self) -> str:
        """The prefix of all its global symbols."""
        return self.layout.name


def joined(modules: Mapping[str, ModuleOp], names: Sequence[str]) -> ModuleOp:
    """
    Join the functions of several modules into one, under the given names; equal constants are shared.

    All modules are at the graph stage.
    """
    union, ahead = _Union(taken=set(names)), iter(names)
    for entry, module in modules.items():
        for function in entries_of(module):
            function.sym_name = StringAttr(next(ahead))
        union.add(module, entry)
        if stage_of(module):
            union.module.attributes[STAGE] = StringAttr(stage_of(module))
    return union.module


def wanted_names(entry: str, module: ModuleOp) -> list[str]:
    """
    The names of a module's functions: the entry name for a single one; for several, the entry name followed by their
    own.

    Without an entry name, their own names.
    """
    own = [function.sym_name.data for function in entries_of(module)]
    return [entry] if len(own) == 1 and entry else [f"{entry}_{name}" if entry else name for name in own]


@dataclass
class _Union:
    """A module under construction; `taken` has the names of its functions and storage."""

    taken: set[str]
    module: ModuleOp = field(default_factory=lambda: ModuleOp([]))
    states: set[str] = field(default_factory=set[str])
    contents: dict[tuple[Attribute, ...], str] = field(default_factory=dict[tuple[Attribute, ...], str])
    """Type and content of each constant → its name."""

    def add(self, module: ModuleOp, entry: str) -> None:
        """Move storage and functions of a module into this one, under unused names."""
        renamed: dict[str, str] = {}
        # Functions may refer to storage that follows them.
        for op in sorted(module.body.block.ops, key=lambda op: not isinstance(op, StorageOp)):
            op.detach()
            if not isinstance(op, StorageOp):
                self.module.body.block.add_op(op)
                _rename(op, renamed)
                continue
            content = (op.type, op.weights or op.value or op.sym_name) if isinstance(op, ConstantOp) else None
            name = op.sym_name.data
            if content is not None and content in self.contents:
                renamed[name] = self.contents[content]
                continue
            renamed[name] = self._free(name, entry, self.taken)
            if content is not None:
                self.contents[content] = renamed[name]
            if isinstance(op, PlaceholderOp):
                # State has the same public name in all entries; inputs and outputs keep theirs.
                label = op.public_name
                op.label = StringAttr(self._free(label, entry, self.states) if op.role == "state" else label)
            op.sym_name = StringAttr(renamed[name])
            self.module.body.block.add_op(op)

    def _free(self, name: str, entry: str, taken: set[str]) -> str:
        """Reserve an unused name."""
        found = distinct(name if name not in taken else f"{entry}.{name}", taken.__contains__)
        taken.add(found)
        return found


def _rename(function: Operation, names: Mapping[str, str]) -> None:
    """Make a function refer to storage by its new names."""

    def new(attribute: Attribute) -> Attribute:
        if isinstance(attribute, SymbolRefAttr):
            name = attribute.string_value()
            return SymbolRefAttr(names[name]) if name in names else attribute
        if isinstance(attribute, ArrayAttr):
            return ArrayAttr([new(item) for item in cast("ArrayAttr[Attribute]", attribute)])
        return attribute

    for op in function.walk():
        for key, attribute in op.properties.items():
            op.properties[key] = new(attribute)


def compile_bundle(
    compilation: Compilation,
    name: str,
    names: Sequence[str],
    form: ObjectForm,
    quantization: Mapping[BindingKey, QuantizationParameters],
) -> Bundle:
    """
    Compile the module of a compilation, whose entries have the C names `names`, to a bundle of that name.

    `quantization` has the quantization parameters of exchanged integers, if the models specify them.

    Raises `GlowError` for any error in model, target or options.
    """
    ladder = compilation.ladder
    if ladder.stage_names[-len(MACHINE_CODE) :] != MACHINE_CODE:
        reason = f"pipeline '{ladder.name}' makes no machine code, which bundles are"
        raise OptionError(reason, hint="--backend cpu")
    targets = set(compilation.targets().values())
    if len(targets) != 1:
        raise OptionError("the functions of a bundle are for one target", hint="leave the target to --target")
    module = compilation.run(ALLOCATED.name)
    weights, saved = largest_constants(module), expanded_bytes(module)
    text = module_text(module, locations=True)
    name_functions(module, name, names)
    memories = {function.sym_name.data: function_memory(function) for function in low_functions(module)}
    interface = BundleInterface(name, binding_types(module), quantization, form)

    def made(_: object) -> Artifact:
        emission = GlowLowToScfPass(pool=False, cancellable=False, instrument=form.instrumented)
        passes = (emission, ScfToLlvmPass())
        return build_artifact(module, compilation.context, False, passes, interface=interface)

    artifact = compilation.finish(made)
    layout = interface.layout
    assert layout is not None
    code = code_bytes(artifact.code[0]) - (artifact.constants.nbytes if form.constants else 0)
    entries = {entry.name: memories[entry.entry.name] for entry in layout.entries}
    report = MemoryReport.of(layout, code, interface.stack, entries, saved)
    return Bundle(artifact, layout, interface.version, text, form, report, weights)


_NAMED = 3
"""The number of constants that an error lists."""


def largest_constants(module: ModuleOp) -> list[str]:
    """The largest constants of an allocated module as text, with short names of their nodes."""
    weights = [op for function in low_functions(module) for op in own_operations(function) if _is_constant(op)]
    short = short_location_names(weights)
    sizes = {op.storage_name: (byte_size(op.result), short.get(op, op.storage_name)) for op in weights}
    largest = sorted(sizes.values(), reverse=True)[:_NAMED]
    return [f"'{name}' of {size:,}" for size, name in largest]


def expanded_bytes(module: ModuleOp) -> int:
    """
    The growth of an allocated module's constants by packed forms that save instructions.

    Kernels with such forms are not selected when optimizing for size.
    """
    found: dict[str, int] = {}
    for function in low_functions(module):
        for op in own_operations(function):
            if not isinstance(op, DerivedInstruction) or op.packing is None or _is_lean(op):
                continue
            for name in op.packing.data:
                value = getattr(op, name)
                if _is_constant(weight := value.owner):
                    plain = math.prod(op.plain_shape(name)) * byte_width(element_of(value))
                    found[weight.storage_name] = byte_size(value) - plain
    return sum(found.values())


def _is_lean(op: DerivedInstruction) -> bool:
    """Whether the kernel of an instruction is also selected when optimizing for size."""
    maker = kernels_of(TABLES).get(op.kernel_name)
    return maker is None or maker().LEAN


def _is_constant(op: Operation) -> TypeGuard[WeightOp]:
    return isinstance(op, WeightOp) and op.region is not None and op.region.data == "constants"


def check_limits(bundle: Bundle) -> None:
    """Raise `OutOfMemoryError` for a bundle that exceeds the flash or RAM of its target."""
    report, target = bundle.report, bundle.layout.target
    limits = target.limits
    if limits.flash_bytes and report.flash > limits.flash_bytes:
        needed = f"code of {report.code:,} bytes and constants of {report.constants:,}"
        reason = f"{needed} take {report.flash - limits.flash_bytes:,} more than the limit of {limits.flash_bytes:,}"
        hint = "--optimize size" if target.policy.optimize != "size" else "fewer layers"
        if bundle.largest:
            hint += f", or 8-bit quantized values; the largest constants are {', '.join(bundle.largest)}"
        raise OutOfMemoryError(reason, hint=hint)
    if limits.ram_bytes and report.ram > limits.ram_bytes:
        needed = f"activations of {report.activations:,} bytes, {report.mutables:,} of inputs, outputs and state"
        over = f"{report.ram - limits.ram_bytes:,} more than the limit of {limits.ram_bytes:,}"
        reason = f"{needed}, and a stack of {report.stack:,} take {over}"
        raise OutOfMemoryError(reason, hint="smaller inputs, 8-bit quantized values, or fewer channels")


def code_bytes(data: bytes) -> int:
    """The memory size of an object's code and tables; the file size for formats that do not record it."""
    return elf.loaded_bytes(data) if data.startswith(elf.MAGIC) else len(data)


def name_functions(module: ModuleOp, bundle: str, names: Sequence[str]) -> None:
    """Give the functions of an allocated module their C names."""
    packing = packing_functions(module)
    entries = [function for function in functions(module) if function.sym_name.data not in packing]
    for function, name in zip(entries, names, strict=True):
        function.sym_name = StringAttr(call_symbol(bundle, name))
    made: dict[str, str] = {}
    for number, function in enumerate(function for function in functions(module) if function.sym_name.data in packing):
        made[function.sym_name.data] = f"{bundle}_pack_{number}{ENTRY_SUFFIX}"
        function.sym_name = StringAttr(made[function.sym_name.data])
    for op in module.body.block.ops:
        if isinstance(op, PlaceholderOp) and op.packing_function is not None:
            op.packed_by = SymbolRefAttr(made[op.packing_function])


def call_symbol(bundle: str, name: str) -> str:
    """The symbol of an entry with the given C name."""
    return f"{bundle}_{name}{ENTRY_SUFFIX}"


def binding_quantization(
    modules: Iterable[ModuleOp], bundle: str, names: Sequence[str]
) -> dict[BindingKey, QuantizationParameters]:
    """
    The quantization parameters of integers exchanged by the entries of imported modules; `names` are their C names.
    """
    entries = [function for module in modules for function in entries_of(module)]
    return {
        (call_symbol(bundle, name), *key): quantization
        for function, name in zip(entries, names, strict=True)
        if isinstance(function, FuncOp)
        for key, quantization in exchanged_quantization(function).items()
    }


def binding_types(module: ModuleOp) -> dict[BindingKey, str]:
    """The type of each binding in the module, by function, role and name."""
    return {
        (function.sym_name.data, op.role, op.public_name): str(op.type)
        for function in low_functions(module)
        for op in placeholders_of(function)
    }
