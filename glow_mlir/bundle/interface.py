"""
The functions by which C calls a bundle, in the module of its entries.

    int32_t NAME_ENTRY(const glow_arguments *arguments)                   three regions
    int32_t NAME_ENTRY_direct(const glow_arguments *, const void *const *) a pointer for each input and output
    int32_t NAME_initialize(const glow_arguments *arguments)              state as it begins
    const char *NAME_error_text(int32_t status)

Each checks what it is given, and is small: an entry itself is called as a session calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
from xdsl.dialects.builtin import BytesAttr, ModuleOp
from xdsl.dialects.llvm import GlobalOp
from xdsl.ir import Operation

from glow_mlir.bundle.config import config_of
from glow_mlir.bundle.exchanged_quantized_values import QuantizationParameters
from glow_mlir.bundle.layout import BindingKey, BundleLayout, EntryLayout, lay_out, seal, version_of
from glow_mlir.bundle.stack import stack_bound
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder, Signature
from glow_mlir.codegen.builder.types import array, i8, i32, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.constant_data import ConstantData
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.target import Target
from glow_mlir.errors import CompilerBugError
from glow_mlir.runtime.artifact import WRONG_VECTORS, Entry, Manifest
from glow_mlir.runtime.bundle import SEAL_BYTES, SEAL_VERSION
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.symbols import symbols_of

ARGUMENTS = ("version", "constants", "mutables", "activations", "parallel", "sizes", "observer")
"""The fields of `glow_arguments`, each of pointer width."""

ERRORS: Mapping[str, str] = {
    "OK": "success",
    "PROCESSOR": "the vectors of this processor have another length than those that the code is made for",
    "ARGUMENTS": "the arguments, or a pointer to a buffer, are null",
    "VERSION": "the header and the object are of different bundles",
    "REGION": "a region is null",
    "ALIGNMENT": "a region does not begin at a multiple of the alignment",
    "WEIGHTS": "the constants are not those of this bundle",
    "SIZES": "a size is not within its bounds",
}
"""The name of an error → its reason; error statuses count from 0 downwards."""

STATUS = {name: -number for number, name in enumerate(ERRORS)}
assert STATUS["PROCESSOR"] == WRONG_VECTORS, "entries return it themselves"


@dataclass(frozen=True)
class ObjectForm:
    """
    The optional contents of an object: the constants, a description of the bundle, and observer calls around each
    instruction.
    """

    constants: bool = False
    config: bool = False
    instrumented: bool = False


@dataclass
class BundleInterface:
    """Builds these functions, once the entries and constants are known."""

    name: str
    types: Mapping[BindingKey, str]
    quantization: Mapping[BindingKey, QuantizationParameters] = field(
        default_factory=dict[BindingKey, QuantizationParameters]
    )
    form: ObjectForm = field(default_factory=ObjectForm)
    layout: BundleLayout | None = None
    version: int = 0
    stack: int = 0
    """The maximum stack usage of a call in bytes."""
    SEAL_BYTES: int = field(default=SEAL_BYTES, init=False)

    def complete(self, modules: Mapping[Target, ModuleOp], manifest: Manifest, region: np.ndarray) -> None:
        """Add the functions to the module, and the seal to the constants."""
        ((target, module),) = modules.items()
        self.layout = lay_out(self.name, target, manifest, self.types, self.quantization)
        self.version = version_of(manifest, region)
        seal(region, self.version)
        add_functions(module, self.layout, self.version)
        self.stack = stack_bound(emit_module(module), target)
        if self.form.constants:
            module.body.block.add_op(_constants(f"{self.name}_constants", region, self.layout.alignment))
        if self.form.config:
            module.body.block.add_ops(config_of(self.layout, self.version, self.form.constants))


def _constants(name: str, region: np.ndarray, alignment: int) -> Operation:
    """The constants as a read-only global."""
    type_ = array(i8, region.size)
    content = BytesAttr(region.tobytes())
    return GlobalOp(type_, name, "external", constant=True, value=content, alignment=alignment)


def add_functions(module: ModuleOp, layout: BundleLayout, version: int) -> None:
    """Add the functions of a bundle to the module of its entries."""
    _Emission(layout, version, ModuleBuilder(layout.target)).add_to(module)


@dataclass
class _Emission:
    """The functions under construction, in a separate module that declares the entries."""

    layout: BundleLayout
    version: int
    module: ModuleBuilder

    def __post_init__(self) -> None:
        add = self.module.module.body.block.add_op
        self.data = ConstantData(self.layout.target, f"{self.layout.name}.text", add)

    def add_to(self, module: ModuleOp) -> None:
        """Add all functions to the module of the entries."""
        manifest = self.layout.manifest
        for entry in (*manifest.entries, *manifest.packing):
            self.module.signatures[entry.name] = Signature((ptr, ptr, ptr, ptr), i32)
        with define_function(self.module, self._check_name, [ptr], i32, internal=True, inline=False) as (b, (given,)):
            self._check(b, given)
        for entry in self.layout.entries:
            self._static(entry)
            self._direct(entry)
        if self.layout.state:
            self._initialize()
        self._error_text()
        for op in list(flattened(self.module.module).body.block.ops):
            op.detach()
            module.body.block.add_op(op)

    @property
    def _check_name(self) -> str:
        return f"{self.layout.name}.check"

    def _check(self, b: Builder, given: Value) -> None:
        """Check version, constants and activations; return an error status if they are wrong."""
        refuse(b, given, "ARGUMENTS")
        version = given.load(i32)
        b.return_if(version.ne(_signed(self.version)), b.constant(STATUS["VERSION"], i32))
        constants, activations = _field(given, "constants"), _field(given, "activations")
        check_region(b, constants, self.layout.alignment)
        if self.layout.activations:
            check_region(b, activations, self.layout.alignment)
        sealed = constants.at(self.layout.constants - SEAL_BYTES + SEAL_VERSION, i8).load(i32)
        b.return_if(sealed.ne(_signed(self.version)), b.constant(STATUS["WEIGHTS"], i32))
        b.give_back(b.constant(STATUS["OK"], i32))

    def _static(self, layout: EntryLayout) -> None:
        """The function that takes three regions."""
        entry = layout.entry
        with define_function(self.module, layout.symbol, [ptr], i32) as (b, (given,)):
            self._checked(b, given)
            mutables = _field(given, "mutables")
            if layout.mutables:
                check_region(b, mutables, self.layout.alignment)
            regions = {"mutables": mutables, "activations": _field(given, "activations")}
            slots = [regions[slot.region].at(slot.offset, i8) for slot in layout.slots]
            bindings = self._bindings(b, entry, slots, given)
            b.give_back(self._status(b, layout, self._run(b, entry, given, bindings)))

    def _direct(self, layout: EntryLayout) -> None:
        """The function that takes a pointer for each binding, which is the array that the entry takes."""
        entry = layout.entry
        with define_function(self.module, f"{layout.symbol}_direct", [ptr, ptr], i32) as (b, (given, buffers)):
            self._checked(b, given)
            refuse(b, buffers, "ARGUMENTS")
            for position in range(len(layout.slots) + bool(entry.symbols)):
                refuse(b, buffers.at(position, ptr).load(ptr), "ARGUMENTS")
            if entry.symbols:
                check_sizes(b, entry, buffers.at(len(layout.slots), ptr).load(ptr))
            b.give_back(self._status(b, layout, self._run(b, entry, given, buffers)))

    def _initialize(self) -> None:
        """The function that sets all state to its initial values, and packs packed state."""
        manifest, offsets = self.layout.manifest, self.layout.state
        with define_function(self.module, f"{self.layout.name}_initialize", [ptr], i32) as (b, (given,)):
            self._checked(b, given)
            constants, mutables = _field(given, "constants"), _field(given, "mutables")
            check_region(b, mutables, self.layout.alignment)
            for value in manifest.state:
                size = int(np.prod(value.shape, dtype=np.int64)) * named_dtype(value.dtype).itemsize
                with b.loop(0, size) as at:
                    zero = b.constant(0, i8)
                    found = zero if value.offset < 0 else constants.at(at + value.offset, i8).load(i8)
                    mutables.at(at + offsets[value.name], i8).store(found)
            for entry in manifest.packing:
                slots = [mutables.at(offsets[binding.name], i8) for binding in entry.bindings]
                self._run(b, entry, given, self._bindings(b, entry, slots, given))
            b.give_back(b.constant(STATUS["OK"], i32))

    def _error_text(self) -> None:
        """The function that returns the text of a status."""
        with define_function(self.module, f"{self.layout.name}_error_text", [i32], ptr) as (b, (status,)):
            for name, text in ERRORS.items():
                self._answer(b, status, STATUS[name], text)
            for number, text in enumerate(self.layout.failures, 1):
                self._answer(b, status, number, text)
            b.give_back(self._text(b, "no status of this bundle"))

    def _answer(self, b: Builder, status: Value, number: int, text: str) -> None:
        b.return_if(status.eq(number), self._text(b, text))

    def _text(self, b: Builder, text: str) -> Value:
        """The address of a zero-terminated text."""
        return b.symbol(self.data.text_symbol(text))

    def _checked(self, b: Builder, given: Value) -> None:
        """Return an error status for wrong arguments."""
        status = b.call(self._check_name, [given])
        assert status is not None
        b.return_if(status.ne(0), status)

    def _bindings(self, b: Builder, entry: Entry, slots: Sequence[Value], given: Value) -> Value:
        """The array of pointers for an entry, on the stack; `slots` are those of inputs, outputs and state."""
        pointers = list(slots)
        if entry.symbols:
            sizes = _field(given, "sizes")
            refuse(b, sizes, "ARGUMENTS")
            check_sizes(b, entry, sizes)
            pointers.append(sizes)
        if entry.observed:
            pointers.append(_field(given, "observer"))
        bindings = b.stack(ptr, max(1, len(pointers)), self.module.target.pointer_bits // 8)
        for position, pointer in enumerate(pointers):
            bindings.at(position, ptr).store(pointer)
        return bindings

    def _run(self, b: Builder, entry: Entry, given: Value, bindings: Value) -> Value:
        """Call an entry; return its result."""
        parallel = _field(given, "parallel") if entry.threads > 1 else b.null()
        regions = _field(given, "constants"), bindings, _field(given, "activations"), parallel
        status = b.call(entry.name, regions)
        if status is None:
            raise CompilerBugError(f"@{entry.name} returns no status")
        return status

    def _status(self, b: Builder, layout: EntryLayout, status: Value) -> Value:
        """Convert the status of an entry to that of the bundle."""
        if not layout.first_status or not layout.entry.failures:
            return status
        return b.select(status > 0, status + layout.first_status, status)


def _field(given: Value, name: str) -> Value:
    """The value of a pointer field in the arguments."""
    return given.at(ARGUMENTS.index(name), ptr).load(ptr)


def check_region(b: Builder, region: Value, alignment: int) -> None:
    """Return an error status if a region is null or misaligned."""
    refuse(b, region, "REGION")
    b.return_if((b.address(region) & (alignment - 1)).ne(0), b.constant(STATUS["ALIGNMENT"], i32))


def check_sizes(b: Builder, entry: Entry, sizes: Value) -> None:
    """Return an error status if a size set by the caller is out of bounds; the entry sets the others itself."""
    given = symbols_of(size for binding in entry.bindings if binding.role != "output" for size in binding.sizes)
    for position, symbol in enumerate(entry.symbols):
        if symbol in given:
            size = sizes.at(position, i64).load(i64)
            b.return_if((size < symbol.least) | (size > symbol.most), b.constant(STATUS["SIZES"], i32))


def refuse(b: Builder, pointer: Value, error: str) -> None:
    """Return an error status for a null pointer."""
    b.return_if(b.address(pointer).eq(0), b.constant(STATUS[error], i32))


def _signed(word: int) -> int:
    """The signed 32-bit number with the bits of a word."""
    return word - (1 << 32) if word >> 31 else word
