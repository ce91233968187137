"""What LLVM gets wrong for Helium: comparisons with one number, products of converted integers with powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from emulators import machine_for
from execute import Case, module_of

from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.narrow_floats import ROUND_MODES
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import named_dtype

FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@pytest.mark.extra
def test_casts_keep_nan() -> None:
    machine = machine_for("cortex-m55")
    numbers = np.tile(np.array([np.nan, 1.5, -np.nan, -1e9], np.float32), 4)
    module, inputs = module_of(*(Case(CastOp, numbers, to=element_type(named_dtype(name))) for name in FLOATS))
    ran = machine.run(Compilation(module, target="cortex-m55").artifact(), inputs)
    assert ran.status == 0
    for found, name in zip(ran.outputs.values(), FLOATS, strict=True):
        assert found.dtype == named_dtype(name)
        np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), np.isnan(numbers))
        assert float(found[1]) == 1.5


@pytest.mark.extra
def test_casts_to_powers_of_two_take_denormal_numbers() -> None:
    machine = machine_for("cortex-m55")
    numbers = np.array([0, 2.0**-129, 2.0**-128, 2.0**-127, 3 * 2.0**-128, 2.0**-126, -1, np.inf], np.float32)
    to = element_type(named_dtype("float8_e8m0fnu"))
    settings = [(mode, saturate) for mode in ROUND_MODES for saturate in (True, False)]
    cases = [Case(CastOp, numbers, to=to, round_mode=mode, saturate=saturate) for mode, saturate in settings]
    module, inputs = module_of(*cases)
    interpreted = run_function(module, inputs)
    ran = machine.run(Compilation(module, target="cortex-m55").artifact(), inputs)
    for (name, wanted), setting in zip(interpreted.items(), settings, strict=True):
        np.testing.assert_array_equal(ran.outputs[name].view(np.uint8), wanted.view(np.uint8), err_msg=str(setting))


DEQUANTIZED = """
glow_high.func @main(%x: tensor<3xi8>) -> tensor<3xf32> {
  %scale = glow_high.splat {value = 0.5} : tensor<f32>
  %y = glow_high.dequantize %x, %scale : tensor<3xf32>
  glow_high.return %y
}
"""
CONVOLVED = """
glow_high.constant @k : tensor<1x2x1xi8> {value = dense<[[[-3], [-5]]]> : tensor<1x2x1xi8>}
glow_high.func @main(%x: tensor<1x3x1xi8>) -> tensor<1x4x1xf32> {
  %scale = glow_high.splat {value = 2.0} : tensor<f32>
  %half = glow_high.splat {value = 0.5} : tensor<f32>
  %k = glow_high.get @k : tensor<1x2x1xi8>
  %input = glow_high.dequantize %x, %half : tensor<1x3x1xf32>
  %filter = glow_high.dequantize %k, %scale : tensor<1x2x1xf32>
  %sum = glow_high.conv %input, %filter {pads = [1, 1]} : tensor<1x4x1xf32>
  %codes = glow_high.quantize %sum {to = !quant.uniform<i8:f32, 0.5>} : tensor<1x4x1x!quant.uniform<i8:f32, 0.5>>
  %y = glow_high.dequantize %codes : tensor<1x4x1xf32>
  glow_high.return %y
}
"""


@pytest.mark.extra
@pytest.mark.parametrize("text", [DEQUANTIZED, CONVOLVED])
def test_integers_are_scaled_by_powers_of_two(text: str) -> None:
    machine = machine_for("cortex-m55")
    module = parse_module(text, new_context())
    codes = np.array([-3, 7, 100], np.int8).reshape((3,) if text is DEQUANTIZED else (1, 3, 1))
    wanted = run_function(module.clone(), {"main.x": codes})
    ran = machine.run(Compilation(module, target="cortex-m55").artifact(), {"x": codes})
    np.testing.assert_array_equal(ran.outputs["result"], wanted["main.result"])
