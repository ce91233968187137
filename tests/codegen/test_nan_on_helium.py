"""On Helium, comparisons of vectors with one number are false for NaN."""

from __future__ import annotations

import numpy as np
from emulators import machine_for
from execute import Case, module_of

from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.driver.compiler import Compilation
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
