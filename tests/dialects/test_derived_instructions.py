"""
Instructions share what operators mean, but for what is asked of graphs alone, and have names of their own.

They are printed as operators are: each round trip of operators is one of instructions too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from filecheck_runner import FILECHECK_ROOT
from xdsl.dialects.builtin import StringAttr, TensorType, f32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from glow_mlir.conversion.glow_high_to_glow_low import GlowHighToGlowLowPass
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.normalization import SoftmaxOp
from glow_mlir.dialects.glow_low.derive import derive_instruction
from glow_mlir.dialects.glow_low.instructions import instruction_of
from glow_mlir.dialects.operand_types import FLOATS
from glow_mlir.dialects.shapes import tensor
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.tools.mlir_text.split_input import pieces


def operator(**members: Any) -> type[HighOp]:
    """An operator with some members besides an operand and a result."""

    def infer_types(self: HighOp) -> Sequence[TensorType[Attribute]]:
        return (tensor((2,), f32),)

    base: dict[str, Any] = {
        "name": "glow_high.strange",
        "access_map": lambda self: self.accessed("input[*] -> result[*]"),
        "__annotations__": {},
        "__module__": __name__,
        "infer_types": infer_types,
    }
    given = {"input": operand_def(FLOATS), "result": result_def(TensorType), **members}
    return irdl_op_definition(type("StrangeOp", (HighOp,), {**base, **given}))


def test_instruction_has_the_operands_and_properties_of_its_operator() -> None:
    definition = derive_instruction(operator(label=prop_def(StringAttr))).get_irdl_definition()
    assert [name for name, _ in definition.operands][:2] == ["result", "input"]
    assert "label" in definition.properties


@pytest.mark.parametrize(
    "members",
    [
        {"scratch": operand_def(FLOATS)},
        {"epilogue_targets": result_def(TensorType)},
        {"kernel": prop_def(StringAttr)},
        {"inputs": prop_def(StringAttr)},
    ],
    ids=["operand", "result", "property", "method"],
)
def test_names_of_instructions_are_taken(members: dict[str, Any]) -> None:
    (name,) = members
    with pytest.raises(TypeError, match=f"'{name}' belongs to every instruction"):
        derive_instruction(operator(**members))


def test_meaning_is_shared_and_what_concerns_graphs_is_not() -> None:
    instruction = instruction_of(SoftmaxOp)
    assert vars(instruction)["infer_types"] is SoftmaxOp.infer_types
    assert "untransposed" in HighOp.OF_GRAPHS
    assert not any(hasattr(instruction, name) for name in HighOp.OF_GRAPHS)


WITHOUT_INSTRUCTION = frozenset(["gradient", "saved"])
"""Files with operators that a pass replaces in front of the lowering."""
ROUND_TRIPS = {
    path.stem: path
    for path in sorted((FILECHECK_ROOT / "dialects" / "glow_high").glob("*.mlir"))
    if "GLOW_UNCHANGED" in path.read_text(encoding="utf-8")
}


@pytest.mark.parametrize("name", sorted(ROUND_TRIPS.keys() - WITHOUT_INSTRUCTION))
def test_round_trips_of_operators_are_those_of_instructions(name: str) -> None:
    for piece in pieces(ROUND_TRIPS[name].read_text(encoding="utf-8")):
        module = parse_module(piece, new_context(), name)
        GlowHighToGlowLowPass().apply(new_context(), module)
        text = module_text(module)
        assert module_text(parse_module(text, new_context())) == text
