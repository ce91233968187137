"""The self-description of a bundle, for programs that run any bundle: `glow_config` and its data."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.llvm import GlobalOp
from xdsl.ir import Operation

from glow_mlir.bundle.layout import BindingSlot, BundleLayout, EntryLayout
from glow_mlir.codegen.builder.types import i64
from glow_mlir.codegen.constant_data import Constant, ConstantData, address, struct, word
from glow_mlir.runtime.bundle import ABI

KINDS = ("input", "output", "state", "packed")
"""Role of a symbol, by its number."""


def config_of(layout: BundleLayout, version: int, has_constants: bool) -> list[Operation]:
    """The globals of a bundle's description with its version; only `NAME_config` is exported."""
    made: list[Operation] = []
    name, data = layout.name, ConstantData(layout.target, f"{layout.name}.config", made.append)
    fields = [
        word(ABI),
        word(version),
        data.text(name),
        data.size(layout.alignment),
        data.size(layout.constants),
        data.size(layout.mutables),
        data.size(layout.activations),
        address(f"{name}_constants", has_constants),
        address(f"{name}_initialize", bool(layout.state)),
        address(f"{name}_error_text"),
        data.size(len(layout.entries)),
        data.table([_entry(data, entry) for entry in layout.entries]),
    ]
    type_, value = struct(fields)
    made.append(GlobalOp(type_, f"{name}_config", "external", constant=True, value=value, alignment=8))
    return made


def _entry(data: ConstantData, entry: EntryLayout) -> Constant:
    """A `glow_entry`."""
    fields = [
        data.text(entry.name),
        address(entry.symbol),
        data.size(entry.mutables),
        data.size(entry.entry.activations),
        data.size(len(entry.entry.symbols)),
        data.size(len(entry.slots)),
        data.table([_symbol(data, slot) for slot in entry.slots]),
    ]
    return struct(fields)


def _symbol(data: ConstantData, slot: BindingSlot) -> Constant:
    """A `glow_symbol`."""
    binding = slot.binding
    fields = [
        data.text(binding.name),
        data.text(binding.dtype),
        word(KINDS.index(binding.role)),
        word(len(binding.shape)),
        data.table([(i64, IntegerAttr(extent, i64)) for extent in binding.shape]),
        data.size(slot.offset),
        data.size(binding.nbytes),
    ]
    return struct(fields)
