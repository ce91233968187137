"""Layers that differ in numbers share machine code, which gives what code of their own would."""

from __future__ import annotations

import numpy as np
import pytest
from cut import check_parts
from execute import Case, compile_module, module_of, runnable_targets, sample
from models import GraphBuilder
from onnx import TensorProto
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.dialects.llvm import FuncOp

from glow_mlir import InferenceSession
from glow_mlir.codegen.kernels.expressions.windows_of_integers import WindowsOfIntegersKernel
from glow_mlir.codegen.kernels.tiled import tiled
from glow_mlir.dialects.element_types import ui8
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.quantization import QuantizeOp, RescaleOp
from glow_mlir.dialects.quant import UniformQuantizedType, uniform
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

NUMBERS = np.array([np.nan, np.inf, -np.inf, 0.5, 2.5, -1.5, -0.0, 99.5, 254.5, 300, -300, 3e9, -3e9, 1e30], np.float32)
"""What is no number, halves, ends of the ranges of bytes, and what i32 does not hold."""

UNSIGNED = [uniform(ui8, f32, scale, zero_point) for scale, zero_point in ((0.75, 131), (0.5, 129), (0.25, 1))]
SIGNED = [uniform(i8, f32, scale, zero_point) for scale, zero_point in ((0.75, -128), (0.5, 7), (0.25, 127))]


def functions(module: ModuleOp, target: str = "host") -> list[str]:
    """The names of the functions of instructions in machine code for a module."""
    compilation = Compilation(module.clone(), target=target)
    compilation.run("llvm")
    found = (op for op in compilation.module.walk() if isinstance(op, FuncOp) and op.body.blocks)
    return [op.sym_name.data for op in found if op.linkage.linkage.data == "internal"]


def layers(kinds: list[UniformQuantizedType], size: int) -> list[Case]:
    """Numbers that become codes, and sums that do, of each type."""
    numbers = np.resize(NUMBERS, size)
    sums, none = np.full(numbers.shape, 3, np.int32), np.zeros_like(numbers)
    quantized = [Case(QuantizeOp, numbers, to=kind) for kind in kinds]
    return [*quantized, *(Case(RescaleOp, sums, none, numbers, to=kind) for kind in kinds)]


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("size", [14, 131])
@pytest.mark.parametrize("kinds", [UNSIGNED, SIGNED], ids=["unsigned", "signed"])
def test_codes(target: str, size: int, kinds: list[UniformQuantizedType]) -> None:
    module, inputs = module_of(*layers(kinds, size))
    wanted = run_function(module, inputs)
    assert len(functions(module, target)) == len(functions(module_of(*layers(kinds[:1], size))[0], target))
    found = compile_module(module, target).run(inputs)
    for name, codes in wanted.items():
        np.testing.assert_array_equal(found[name], codes, err_msg=name)


@pytest.mark.parametrize("target", runnable_targets())
def test_epilogues(target: str) -> None:
    """Micro-kernels of products and convolutions, of sizes that differ, with one body."""
    random = np.random.default_rng(3)
    cases: list[Case] = []
    for number, kind in enumerate(UNSIGNED):
        left = random.integers(0, 255, (9 + number, 24), np.uint8)
        right = random.integers(-128, 127, (24, 20), np.int8)
        product = Case(MatMulOp, left, right, constants=(1,))
        image = random.integers(0, 255, (1, 7, 6 + number, 8), np.uint8)
        filters = random.integers(-128, 127, (20, 3, 3, 8), np.int8)
        cases += [product, Case(ConvOp, image, filters, constants=(1,))]
        cases += [Case(QuantizeOp, sample((9, 20)), to=kind)]
    module, inputs = module_of(*cases)
    wanted, found = run_function(module, inputs), compile_module(module, target).run(inputs)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_parts() -> None:
    module, inputs = module_of(*layers(UNSIGNED, 5003))
    assert check_parts(module, inputs) > 0


def test_pools_of_codes_do_not_share_zero_points() -> None:
    """By itself and by tiles, a sum of codes depends on their zero point."""
    assert WindowsOfIntegersKernel().READS_ZERO_POINTS
    assert tiled(WindowsOfIntegersKernel()).READS_ZERO_POINTS


@pytest.mark.parametrize("added", [(40000.0,), (-40000.0, 7.0), (32768.0, -32769.0, 200.0)])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_numbers_far_from_zero_become_bytes(kind: type[np.generic], added: tuple[float, ...]) -> None:
    """What is added is no zero point of bytes: 16 bits do not hold it."""
    info, random = np.iinfo(np.dtype(kind).name), np.random.default_rng(0)
    g = GraphBuilder(0)
    inputs = {f"x{number}": (TensorProto.FLOAT, [64]) for number in range(len(added))}
    limits = [g.weight(np.float32(limit)) for limit in (info.min, info.max)]
    to = TensorProto.UINT8 if kind is np.uint8 else TensorProto.INT8
    codes: dict[str, list[int | str]] = {}
    for name, number in zip(inputs, added, strict=True):
        shifted = g.node("Add", g.node("Round", name), g.weight(np.float32(number)))
        codes[g.node("Cast", g.node("Clip", shifted, *limits), to=to)] = [64]
    session = InferenceSession(g.model(inputs, codes, kind=to), cache=False)
    given = {
        name: (random.uniform(info.min, info.max, 64) - number).astype(np.float32)
        for name, number in zip(inputs, added, strict=True)
    }
    for found, (name, number) in zip(session.run(None, given), zip(inputs, added, strict=True), strict=True):
        wanted = np.clip(np.rint(given[name]) + np.float32(number), info.min, info.max).astype(kind)
        np.testing.assert_array_equal(found, wanted)
