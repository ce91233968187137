"""What a bundle says of itself to a program that runs any: the constants `glow_config` and what that points to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, BytesAttr, IntegerAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.llvm import GlobalOp, LLVMStructType
from xdsl.ir import Attribute, Operation

from glow_mlir.bundle.layout import BundleLayout, EntryLayout, Place
from glow_mlir.codegen.builder.types import array, i8, i32, i64, integer_of_width, ptr
from glow_mlir.runtime.bundle import ABI
from glow_mlir.transforms.allocate import ALIGNMENT

KINDS = ("input", "output", "state", "packed")
"""What a symbol is, by its number."""


def text_global(name: str, text: str) -> Operation:
    """A text that ends with a zero, which nobody else sees."""
    data = text.encode() + b"\0"
    return GlobalOp(array(i8, len(data)), name, "private", constant=True, value=BytesAttr(data), alignment=1)


def config_of(layout: BundleLayout, version: int, has_constants: bool) -> list[Operation]:
    """The globals of the description of a bundle, whose version that is; `NAME_config` is the one that others see."""
    return _Config(layout).globals(version, has_constants)


@dataclass
class _Config:
    """The globals under construction."""

    layout: BundleLayout
    made: list[Operation] = field(default_factory=list[Operation])

    @property
    def size_type(self) -> Attribute:
        """The type `size_t`."""
        return integer_of_width(self.layout.target.pointer_bits)

    def globals(self, version: int, has_constants: bool) -> list[Operation]:
        """All of them."""
        layout, size = self.layout, self.size_type
        name = layout.name
        fields = [
            (i32, _number(ABI, i32)),
            (i32, _number(version, i32)),
            (ptr, self.text(name)),
            (size, self.size(ALIGNMENT)),
            (size, self.size(layout.constants)),
            (size, self.size(layout.mutables)),
            (size, self.size(layout.activations)),
            (ptr, SymbolRefAttr(f"{name}_constants") if has_constants else UnitAttr()),
            (ptr, SymbolRefAttr(f"{name}_initialize") if layout.state else UnitAttr()),
            (ptr, SymbolRefAttr(f"{name}_error_text")),
            (size, self.size(len(layout.entries))),
            (ptr, self.table([self.entry(entry) for entry in layout.entries])),
        ]
        self._add(f"{name}_config", *_struct(fields), linkage="external")
        return self.made

    def entry(self, entry: EntryLayout) -> tuple[Attribute, Attribute]:
        """A `glow_entry`."""
        size = self.size_type
        fields = [
            (ptr, self.text(entry.name)),
            (ptr, SymbolRefAttr(entry.symbol)),
            (size, self.size(entry.mutables)),
            (size, self.size(entry.entry.activations)),
            (size, self.size(len(entry.entry.symbols))),
            (size, self.size(len(entry.places))),
            (ptr, self.table([self.symbol(place) for place in entry.places])),
        ]
        return _struct(fields)

    def symbol(self, place: Place) -> tuple[Attribute, Attribute]:
        """A `glow_symbol`."""
        binding, size = place.binding, self.size_type
        shape = [(i64, _number(extent, i64)) for extent in binding.shape]
        fields = [
            (ptr, self.text(binding.name)),
            (ptr, self.text(binding.dtype)),
            (i32, _number(KINDS.index(binding.role), i32)),
            (i32, _number(len(binding.shape), i32)),
            (ptr, self.table(shape)),
            (size, self.size(place.offset)),
            (size, self.size(binding.nbytes)),
        ]
        return _struct(fields)

    def size(self, value: int) -> Attribute:
        """A `size_t`."""
        return _number(value, self.size_type)

    def text(self, text: str) -> Attribute:
        """The address of a text."""
        name = self._fresh()
        self.made.append(text_global(name, text))
        return SymbolRefAttr(name)

    def table(self, items: Sequence[tuple[Attribute, Attribute]]) -> Attribute:
        """The address of an array of constants of one type; null for none."""
        if not items:
            return UnitAttr()
        name = self._fresh()
        self._add(name, array(items[0][0], len(items)), ArrayAttr([value for _, value in items]))
        return SymbolRefAttr(name)

    def _fresh(self) -> str:
        """A name for a global that nobody else sees."""
        return f"{self.layout.name}.config.{len(self.made)}"

    def _add(self, name: str, type_: Attribute, value: Attribute, linkage: str = "private") -> None:
        self.made.append(GlobalOp(type_, name, linkage, constant=True, value=value, alignment=8))


def _struct(fields: Sequence[tuple[Attribute, Attribute]]) -> tuple[Attribute, Attribute]:
    """The type and the value of a struct."""
    return LLVMStructType.from_type_list([type_ for type_, _ in fields]), ArrayAttr([value for _, value in fields])


def _number(value: int, type_: Attribute) -> Attribute:
    """A number; one of 32 bits without a sign as the one with a sign that has its bits."""
    return IntegerAttr(value - (1 << 32) if type_ is i32 and value >> 31 else value, type_)  # pyright: ignore
