"""On Helium, comparisons of vectors with one number are false for NaN, and casts take denormal numbers as they are."""

from __future__ import annotations

import numpy as np
from emulators import machine_for
from execute import Case, module_of

from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.narrow_floats import ROUND_MODES
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.support.dtypes import named_dtype

FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


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
