"""
Derivation of instructions: a `glow_high` operator gives its `glow_low` instruction (Glow's auto-IRGen).

Results become @out operands, operands @in operands, properties stay; methods that state the operator's meaning
(`infer_types`, `scalar`, …) are shared, so the instruction verifies and computes as its operator does.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.irdl import (
    OptionalDef,
    VariadicDef,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_low.base import BUFFER, Instruction, Qualifier
from glow_mlir.dialects.shapes import element_of, shape_of

_OWN = {"name", "print", "parse", "verify_", "make", "inputs", "get_irdl_definition", "traits", "irdl_options", "fold"}
"""Members that the instruction has itself."""

_RESERVED = {"kernel", "tiles", "packing", "scratch"}
"""What selection writes on an instruction; no operator may have properties of these names."""


class DerivedInstruction(Instruction):
    """An instruction that was derived from the operator class `OPERATOR`."""

    OPERATOR: ClassVar[type[HighOp]]

    kernel = opt_prop_def(StringAttr)
    """Name of the kernel that a backend selected."""
    tiles = opt_prop_def(DictionaryAttr)
    """Parameters of the kernel."""
    packing = opt_prop_def(DictionaryAttr)
    """Operand name → how its elements are packed, for operands that are not in their plain layout."""

    def verify_(self) -> None:
        if self.packing is not None:
            return
        for value, expected in zip(self.outputs(), cast(Any, self.OPERATOR).infer_types(self), strict=True):
            if shape_of(value) != expected.get_shape() or element_of(value) != expected.element_type:
                raise VerifyException(f"@out has type {value.type}, but {expected} follows from the operands")


def _shared_members(operator: type[HighOp]) -> dict[str, Any]:
    """Methods, class constants and properties that say what the operator means."""
    members: dict[str, Any] = {}
    for ancestor in reversed(operator.mro()):
        if not issubclass(ancestor, HighOp) or ancestor is HighOp:
            continue
        for name, member in vars(ancestor).items():
            is_constant = name.isupper()
            if (isinstance(member, FunctionType | staticmethod) or is_constant) and name not in _OWN:
                if not name.startswith("__"):
                    members[name] = member
    return members


def derive_instruction(operator: type[HighOp], dialect: str = "glow_low") -> type[DerivedInstruction]:
    """The instruction of `operator`, named like it in `dialect`."""
    definition = operator.get_irdl_definition()
    namespace: dict[str, Any] = {}
    qualifiers: dict[str, Qualifier] = {}
    for name, _ in definition.results:
        namespace[name] = operand_def(BUFFER)
        qualifiers[name] = Qualifier.OUT
    for name, declared in definition.operands:
        variadic = isinstance(declared, VariadicDef)
        optional = isinstance(declared, OptionalDef)
        namespace[name] = (opt_operand_def if optional else var_operand_def if variadic else operand_def)(BUFFER)
        qualifiers[name] = Qualifier.IN
    namespace["scratch"] = var_operand_def(BUFFER)
    qualifiers["scratch"] = Qualifier.SCRATCH
    for name, declared in definition.properties.items():
        if name == "operandSegmentSizes":
            continue
        if name in _RESERVED:
            raise TypeError(f"{operator.name}: the property '{name}' belongs to every instruction")
        if isinstance(declared, OptionalDef):
            namespace[name] = opt_prop_def(declared.constr)
        else:
            namespace[name] = prop_def(declared.constr, default_value=declared.default_value)
    namespace |= {
        "name": f"{dialect}.{operator.name.split('.', 1)[1]}",
        "__doc__": operator.__doc__,
        "__annotations__": {},
        "__module__": operator.__module__,
    }
    instruction = irdl_op_definition(type(f"{operator.__name__}Instruction", (DerivedInstruction,), namespace))
    constants = {"OPERATOR": operator, "QUALIFIERS": qualifiers, "INPLACE": operator.INPLACE}
    for name, member in {**_shared_members(operator), **constants}.items():
        setattr(instruction, name, member)
    return instruction
