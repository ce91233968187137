"""Numbers become codes on Arm's microcontrollers, where instructions round and limit, as they do in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from emulators import machine_for
from execute import Case, module_of
from xdsl.dialects.builtin import f32, i8

from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.quantization import QuantizeOp, RescaleOp
from glow_mlir.dialects.quant import UniformQuantizedType, uniform
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

NUMBERS = (
    np.nan,
    np.inf,
    -np.inf,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    -0.0,
    126.5,
    127.5,
    254.5,
    255.5,
    -128.5,
    3e9,
    -3e9,
    1e30,
)
"""What is no number, halves, ends of the ranges of bytes, and what i32 does not hold."""

TYPES = (
    *(uniform(ui8, f32, 1.0, zero_point) for zero_point in (0, 131)),
    *(uniform(i8, f32, 1.0, zero_point) for zero_point in (0, -128, 7)),
    UniformQuantizedType.of(i8, f32, [(1.0, 0)], bounds=(-127, 127)),
)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m55"])
def test_codes_are_those_of_the_interpreter(target: str) -> None:
    machine = machine_for(target)
    numbers = np.array(NUMBERS, np.float32)
    sums = np.full(numbers.shape, 3, np.int32)
    quantized = [Case(QuantizeOp, numbers, to=kind) for kind in TYPES]
    # A sum times 0, and an offset.
    rescaled = [Case(RescaleOp, sums, np.zeros_like(numbers), numbers, to=kind) for kind in TYPES]
    module, inputs = module_of(*quantized, *rescaled)
    wanted = run_function(module, inputs)
    found = machine.run(Compilation(module, target=target).artifact(), inputs).outputs
    for (name, codes), kind in zip(wanted.items(), (*TYPES, *TYPES), strict=True):
        np.testing.assert_array_equal(found[name], codes, err_msg=str(kind))
