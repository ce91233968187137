"""The validation of passes sees what it is there to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from validation import validate
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.elementwise_math import AbsOp, NegOp
from glow_mlir.errors import ParseFailure
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

TEXT = """
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<2xf32>
  %1 = glow_high.neg %x : tensor<2xf32>
  glow_high.save %1, @y
}
"""
INPUTS = {"x": np.array([1, 2], np.float32)}


def wrong_value(module: ModuleOp) -> None:
    for op in list(module.walk()):
        if isinstance(op, NegOp) and (block := op.parent_block()):
            new = AbsOp.make(op.operands[0], location=op.location)
            block.insert_op_before(new, op)
            op.results[0].replace_all_uses_with(new.results[0])
            block.erase_op(op)


def lost_location(module: ModuleOp) -> None:
    for op in module.walk():
        op.location = UnknownLoc()


def invalid(module: ModuleOp) -> None:
    for op in module.walk():
        op.properties.pop("symbol", None)


@pytest.mark.parametrize(
    ("change", "error"), [(wrong_value, AssertionError), (lost_location, AssertionError), (invalid, ParseFailure)]
)
def test_a_wrong_pass_is_found_and_shown(change: Callable[[ModuleOp], None], error: type[Exception]) -> None:
    @dataclass(frozen=True)
    class WrongPass(ModulePass):
        name = "wrong"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            change(op)

    with pytest.raises(error) as caught:
        validate(parse_module(TEXT, new_context()), [WrongPass()], INPUTS)
    assert "pass wrong on" in caught.value.__notes__[-1]


def test_a_right_pass_passes() -> None:
    validate(parse_module(TEXT, new_context()), "canonicalize,glow-high-to-glow-low,stack,verify-low", INPUTS)
