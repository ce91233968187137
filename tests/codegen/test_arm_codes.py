"""Codes on Arm's microcontrollers: rounded, limited and multiplied as they are in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from emulators import machine_for
from execute import Case, module_of
from xdsl.dialects.builtin import f32, i8

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
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


@pytest.mark.extra
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


@pytest.mark.extra
@pytest.mark.parametrize("left", [np.uint8, np.int8])
def test_products_with_widened_panels_are_exact(left: type[np.generic]) -> None:
    """The deepest panels that are widened and a deeper one; rests of cells; few rows; windows; ends of the ranges."""
    random, info = np.random.default_rng(5), np.iinfo(np.dtype(left).name)
    cells = kernel_costs(PRESETS["cortex-m4"]).widened_groups

    def operands(shape: tuple[int, ...], right: tuple[int, ...]) -> list[np.ndarray]:
        first = random.integers(info.min, info.max, shape, left, endpoint=True)
        second = random.integers(-128, 127, right, np.int8, endpoint=True)
        first.flat[: shape[-1]], second.flat[: right[-1]] = info.max, -128
        return [first, second]

    products = [(5, cells, 7), (5, cells + 1, 4), (4, 7, 6), (2, 8, 4)]
    cases = [Case(MatMulOp, *operands((m, k), (k, n)), constants=(1,)) for m, k, n in products]
    cases.append(Case(ConvOp, *operands((1, 6, 7, 3), (5, 3, 2, 3)), constants=(1,)))
    module, inputs = module_of(*cases)
    wanted = run_function(module, inputs)
    found = machine_for("cortex-m4").run(Compilation(module, target="cortex-m4").artifact(), inputs).outputs
    for name, sums in wanted.items():
        np.testing.assert_array_equal(found[name], sums)
