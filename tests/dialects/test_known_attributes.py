"""Ops of ours have declared properties, and attributes of other dialects; misspelt properties are refused."""

from __future__ import annotations

import pytest

from glow_mlir.dialects.glow_high.dialect import GLOW_HIGH
from glow_mlir.dialects.glow_low.dialect import GLOW_LOW
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.errors import ParseFailure
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module

HIGH = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @y) attributes {test.f = 1} {
  %x = glow_high.get @x {test.g = 1} : tensor<4xf32>
  %0 = glow_high.clip %x {test.h = 1} : tensor<4xf32>
  glow_high.save %0, @y {test.s = 1}
}
"""

LOW = """
glow_high.placeholder @x : tensor<4xf32> {input, test.p = 1}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x {test.w = 1} : memref<4xf32>
  %y = glow_low.weight @y {mutable} : memref<4xf32>
  %0 = glow_low.alloc {test.a = 1} : memref<4xf32>
  glow_low.neg @out %0, @in %x {test.n = 1}
  glow_low.copy @out %y, @in %0 {test.c = 1}
  glow_low.dealloc @out %0 {test.d = 1}
}
"""

WRONG = {
    "test.f": r"unknown property 'min' \(hint: those of glow_high.func are argument_roles, bindings, ",
    "test.g": r"unknown property 'min' \(hint: those of glow_high.get are mutable, symbol\)",
    "test.h": r"unknown property 'min' \(hint: glow_high.clip has none\)",
    "test.s": r"unknown property 'min' \(hint: those of glow_high.save are symbol\)",
    "test.p": r"unknown property 'min' \(hint: those of glow_high.placeholder are between, input, label, output, ",
    "test.w": r"unknown property 'min' \(hint: those of glow_low.weight are mutable, offset, region, symbol\)",
    "test.a": r"unknown property 'min' \(hint: those of glow_low.alloc are device, offset\)",
    "test.n": r"unknown property 'min' \(hint: those of glow_low.neg are ",
    "test.c": r"unknown property 'min' \(hint: ",
    "test.d": r"unknown property 'min' \(hint: ",
}


@pytest.mark.parametrize("place", WRONG)
def test_unknown_properties_are_refused(place: str) -> None:
    text = HIGH if place in HIGH else LOW
    parse_module(text, new_context())
    with pytest.raises(ParseFailure, match=WRONG[place]) as caught:
        parse_module(text.replace(place, "min"), new_context())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", WRONG)
def test_unknown_attributes_of_the_generic_form_are_refused(place: str) -> None:
    module = parse_module(HIGH if place in HIGH else LOW, new_context())
    generic = module_text(module, generic=True)
    assert place in generic
    with pytest.raises(ParseFailure, match="unknown property 'min'"):
        parse_module(generic.replace(place, "min").replace('"min"', "min"), new_context())


def test_every_op_is_checked() -> None:
    ops = [*GLOW_HIGH.operations, *GLOW_LOW.operations]
    assert not [op.name for op in ops if not op.has_trait(KnownAttributes)]
