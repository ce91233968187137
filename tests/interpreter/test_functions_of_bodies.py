"""The functions that a body may have: machine code and the interpreter give the same."""

from __future__ import annotations

import numpy as np
import pytest

import glow_mlir
from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

TEXT = """
glow_high.placeholder @x : tensor<{count}x{type}> {{input}}
glow_high.placeholder @y : tensor<{count}x{type}> {{output}}
glow_high.func @main(@x, @y) {{
  %x = glow_high.get @x : tensor<{count}x{type}>
  %0 = glow_high.generic %x {{maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterators = ["parallel"]}} {{
  ^bb0(%e: {type}):
    {body}
    glow.yield %r : {type}
  }} : tensor<{count}x{type}>
  glow_high.save %0, @y
}}
"""

NUMBERS = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 7.3, 100.0, -3.7, 1e-3, 0.49999997], np.float32)
WHOLE = np.array([0, 1, -1, 7, -128, 2**30, -(2**31), 255], np.int32)

OF_FLOATS = {
    **{name: f"%r = math.{name} %e : f32" for name in ("exp2", "log10", "log2", "round", "rsqrt")},
    "atan2": "%c = arith.constant 0.75 : f32\n%r = math.atan2 %e, %c : f32",
    "copysign": "%c = arith.constant -2.0 : f32\n%r = math.copysign %c, %e : f32",
}
OF_INTEGERS = {"absi": "%r = math.absi %e : i32", "ctpop": "%r = math.ctpop %e : i32"}


def _both(body: str, element: str, x: np.ndarray) -> list[np.ndarray]:
    """What the two backends give."""
    text = TEXT.format(count=len(x), type=element, body=body)
    modules = (parse_module(text, new_context()) for _ in range(2))
    sessions = [glow_mlir.InferenceSession(m, backend=b) for m, b in zip(modules, ("cpu", "interpreter"), strict=True)]
    return [session.run(None, {"x": x})[0] for session in sessions]


@pytest.mark.parametrize("name", OF_FLOATS)
def test_functions_of_floats(name: str) -> None:
    found, expected = _both(OF_FLOATS[name], "f32", NUMBERS)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-38)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_integers(name: str) -> None:
    found, expected = _both(OF_INTEGERS[name], "i32", WHOLE)
    np.testing.assert_array_equal(found, expected)


def test_what_the_interpreter_does_not_execute_is_one_line() -> None:
    text = TEXT.format(count=2, type="i32", body="%r = math.ctlz %e : i32")
    with pytest.raises(GlowError, match=r"the interpreter does not execute math\.ctlz"):
        glow_mlir.InferenceSession(parse_module(text, new_context()), backend="interpreter").run(
            None, {"x": np.zeros(2, np.int32)}
        )
