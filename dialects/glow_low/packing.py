"""Packed operands: the entries of `packing`, and the instruction that packs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def

from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.properties import integer, ints, text
from glow_mlir.dialects.shapes import Shape, require, shape_of
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class PackOp(Instruction):
    """
    Write an operand in the layout that a kernel reads: an entry of `packing` of the instruction with that kernel.

    ```mlir
    glow_low.pack @out %panels, @in %w {layout = {form = "panels", shape = [100, 70], panel = 16}}
    ```
    """

    name = "glow_low.pack"
    QUALIFIERS: ClassVar[Mapping[str, Qualifier]] = {"target": Qualifier.OUT, "source": Qualifier.IN}

    target = operand_def(BUFFER)
    source = operand_def(BUFFER)

    layout = prop_def(DictionaryAttr)
    kernel = opt_prop_def(StringAttr)
    partitions = opt_prop_def(DictionaryAttr)

    def verify_(self) -> None:
        verify_form("source", self.layout)
        shape, (_, plain, _) = shape_of(self.source), form_of(self.layout)
        require(shape == plain, f"what is packed has the shape {shape}, not {plain} as 'layout' says")


def form_of(entry: DictionaryAttr) -> tuple[str, Shape, dict[str, int]]:
    """The parts of an entry of `packing`: the name of its form, the unpacked shape, and numbers."""
    numbers = {key: integer(value) for key, value in entry.data.items() if key not in ("form", "shape")}
    return text(entry.data["form"]), ints(entry.data["shape"]), numbers


def verify_form(name: str, entry: Attribute) -> None:
    """Check that the entry of `packing` for the operand `name` has a form, the unpacked shape, and numbers."""
    entries = dict(entry.data) if isinstance(entry, DictionaryAttr) else {}
    require(isinstance(entries.pop("form", None), StringAttr), f"'packing' of '{name}' needs 'form', a name")
    known = _is_shape(entries.pop("shape", None))
    require(known, f"'packing' of '{name}' needs 'shape', a list of whole numbers from 0 on")
    for key, number in entries.items():
        numeral = isinstance(number, IntegerAttr) and number.value.data >= 0
        require(numeral, f"'{key}' of the packed '{name}' is a whole number from 0 on, not {number}")


def _is_shape(sizes: Attribute | None) -> bool:
    """Whether an attribute is a list of whole numbers from 0 on."""
    if not isinstance(sizes, DenseArrayBase):
        return False
    listed = cast(DenseArrayBase[Any], sizes)
    return isinstance(listed.elt_type, IntegerType) and min(ints(listed), default=0) >= 0
