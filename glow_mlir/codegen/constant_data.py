"""Constants of an object that point to each other: texts, tables and structs, which callers in C read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ArrayAttr, BytesAttr, IntegerAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.llvm import GlobalOp, LLVMStructType
from xdsl.ir import Attribute, Operation

from glow_mlir.codegen.builder.types import array, i8, i32, integer_of_width, ptr
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Constant = tuple[Attribute, Attribute]
"""The type and the value of a constant."""


@dataclass
class ConstantData:
    """
    Makes private globals, passes them to `add`, and returns their addresses.

    Their names begin with `prefix`; equal texts share one.
    """

    target: Target
    prefix: str
    add: Callable[[Operation], object]

    def __post_init__(self) -> None:
        self._count = 0
        self._texts: dict[str, str] = {}

    def size(self, value: int) -> Constant:
        """A `size_t`."""
        type_ = integer_of_width(self.target.pointer_bits)
        return type_, IntegerAttr(value, type_)

    def text(self, text: str) -> Constant:
        """The address of a text with a terminating zero."""
        return address(self.text_symbol(text))

    def text_symbol(self, text: str) -> str:
        """The name of the global of a text with a terminating zero."""
        if text not in self._texts:
            data = text.encode() + b"\0"
            self._texts[text] = self._global(array(i8, len(data)), BytesAttr(data), 1)
        return self._texts[text]

    def table(self, items: Sequence[Constant]) -> Constant:
        """The address of an array of constants of one type; null if there are none."""
        if not items:
            return ptr, UnitAttr()
        type_ = array(items[0][0], len(items))
        return address(self._global(type_, ArrayAttr([value for _, value in items]), 8))

    def single(self, constant: Constant) -> str:
        """The name of a global that holds one constant."""
        return self._global(*constant, 8)

    def _global(self, type_: Attribute, value: Attribute, alignment: int) -> str:
        """Add a global and return its name."""
        name = f"{self.prefix}.{self._count}"
        self._count += 1
        self.add(GlobalOp(type_, name, "private", constant=True, value=value, alignment=alignment))
        return name


def address(symbol: str, is_there: bool = True) -> Constant:
    """The address of a function or global; null if it does not exist."""
    return ptr, SymbolRefAttr(symbol) if is_there else UnitAttr()


def word(value: int) -> Constant:
    """An unsigned number of 32 bits, as the signed number with the same bits."""
    return i32, IntegerAttr(value - (1 << 32) if value >> 31 else value, 32)


def struct(fields: Sequence[Constant]) -> Constant:
    """The constants as the fields of a struct."""
    return LLVMStructType.from_type_list([type_ for type_, _ in fields]), ArrayAttr([value for _, value in fields])
