"""The packed form of a kernel's operand, which `select` makes and `verify-selected` expects."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PackedForm:
    """A layout of an operand, and the type of its elements there."""

    layout: PackedLayout
    element: Attribute

    def described(self) -> DictionaryAttr:
        """The entry of the operand in the property `packing`."""
        layout = self.layout
        numbers = {key: to_attribute(number) for key, number in layout.numbers.items()}
        return DictionaryAttr({"form": StringAttr(layout.form), "shape": to_attribute(layout.plain), **numbers})
