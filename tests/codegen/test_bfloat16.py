"""bfloat16 on both backends: each family of operators, conversions bit by bit, and a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breadth import share
from execute import Case, check, check_all, compile_module, module_of, runnable_targets, sample
from machines import brain_product_targets
from xdsl.dialects.builtin import f32

from glow_mlir import InferenceSession
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high import elementwise_binary, elementwise_math
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp, ConvTransposeOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, PadOp, TransposeOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, SoftmaxOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, MaxPoolOp
from glow_mlir.dialects.glow_high.recurrent import GruOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, TopKOp
from glow_mlir.interpreter.machine import run_function
from glow_mlir.support.dtypes import BFLOAT16, named_dtype

KIND = named_dtype(BFLOAT16)


def brain(*shape: int) -> np.ndarray:
    return sample(shape, BFLOAT16)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(
    "operator",
    [
        elementwise_binary.AddOp,
        elementwise_binary.DivOp,
        elementwise_binary.ModOp,
        elementwise_binary.MaxOp,
        elementwise_binary.LessOp,
    ],
)
def test_binary(operator: type[HighOp], target: str):
    check(operator, brain(5, 37), brain(37), target=target, tolerance=0.0)


@pytest.mark.parametrize(
    "operator", [elementwise_math.SqrtOp, elementwise_math.FloorOp, elementwise_math.NegOp, elementwise_math.AbsOp]
)
def test_exact_functions(operator: type[HighOp]):
    check(operator, brain(5, 37), tolerance=0.0)


@pytest.mark.parametrize("operator", [elementwise_math.ExpOp, elementwise_math.SinOp])
def test_functions(operator: type[HighOp]):
    check(operator, brain(5, 37))


def narrow_products(kind: str) -> list[Case]:
    """Products of 16-bit floats that give their sums, with right operands that are constant and others."""
    found: list[Case] = []
    for constants in ((1,), ()):
        options: dict[str, Any] = {"constants": constants, "to": f32}

        def matrix(*shape: int) -> np.ndarray:
            return sample(shape, kind)

        def wide(*shape: int) -> np.ndarray:
            return sample(shape, "float32")

        for rows, depth, columns in [(1, 1, 1), (3, 7, 5), (13, 66, 70), (7, 129, 100)]:
            found.append(Case(MatMulOp, matrix(rows, depth), matrix(depth, columns), wide(columns), **options))
            turned = matrix(columns, depth)
            found.append(Case(MatMulOp, matrix(rows, depth), turned, transpose_right=True, **options))
        found += [
            Case(MatMulOp, matrix(2, 3, 5, 9), matrix(3, 9, 33), **options),
            Case(FullyConnectedOp, matrix(5, 33), matrix(33, 20), wide(20), **options),
            Case(ConvOp, matrix(2, 9, 10, 6), matrix(5, 3, 2, 6), wide(5), **options),
            Case(ConvOp, matrix(1, 11, 12, 8), matrix(70, 3, 3, 8), strides=[2, 2], pads=[1, 1, 1, 1], **options),
            Case(ConvOp, matrix(1, 11, 12, 8), matrix(16, 3, 3, 2), group=4, dilations=[2, 1], **options),
            Case(ConvOp, matrix(1, 9, 9, 35), matrix(35, 3, 3, 1), group=35, **options),
            Case(ConvOp, matrix(1, 23, 23, 3), matrix(20, 7, 7, 3), strides=[2, 2], **options),
            Case(ConvOp, matrix(1, 3, 20, 20), matrix(16, 3, 3, 3), layout="channels_first", **options),
            Case(ConvOp, matrix(2, 19, 5), matrix(3, 4, 5), **options),
            # Large enough for Strassen's algorithm, were they f32.
            Case(MatMulOp, matrix(256, 512), matrix(512, 512), **options),
            Case(ConvOp, matrix(1, 16, 32, 512), matrix(512, 1, 1, 512), **options),
            # Large enough for tiles of Winograd's algorithm, the last of them partial.
            Case(ConvOp, matrix(1, 21, 23, 64), matrix(64, 3, 3, 64), wide(64), **options),
        ]
    return found


@pytest.mark.parametrize("kind", [BFLOAT16, "float16"])
@pytest.mark.parametrize("target", [*runnable_targets(), *brain_product_targets()])
def test_products_give_their_sums(target: str, kind: str):
    check_all(share(narrow_products(kind), target + kind), target, 1e-3)


@pytest.mark.parametrize("kind", [BFLOAT16, "float16"])
@pytest.mark.parametrize("target", [*runnable_targets(), *brain_product_targets()])
def test_products_are_rounded_when_stored(target: str, kind: str):
    """With fewer columns than a vector has, and more."""
    cases: list[Case] = []
    for columns in (1, 3, 7, 12, 33):
        cases.append(Case(MatMulOp, sample((5, 16), kind), sample((16, columns), kind), constants=(1,)))
        filters = sample((columns, 3, 3, 4), kind)
        cases.append(Case(ConvOp, sample((1, 7, 7, 4), kind), filters, constants=(1,)))
        cases.append(Case(ConvOp, sample((1, 7, 7, columns), kind), sample((columns, 3, 3, 1), kind), group=columns))
    check_all(cases, target)


CASES: dict[str, Case] = {
    "attention": Case(AttentionOp, brain(1, 2, 5, 8), brain(1, 2, 7, 8), brain(1, 2, 7, 8)),
    "avg_pool": Case(AvgPoolOp, brain(1, 8, 8, 20), kernel_shape=(3, 3)),
    "concat": Case(ConcatOp, [brain(2, 3), brain(2, 5)], axis=1),
    "conv": Case(ConvOp, brain(1, 9, 9, 8), brain(16, 3, 3, 8), brain(16), pads=(1, 1, 1, 1)),
    "conv_transpose": Case(ConvTransposeOp, brain(1, 5, 5, 4), brain(4, 3, 3, 6), strides=(2, 2)),
    "gather": Case(GatherOp, brain(5, 7), np.array([4, 0, 2])),
    "gru": Case(GruOp, brain(3, 2, 4), brain(1, 15, 4), brain(1, 15, 5)),
    "layer_normalization": Case(LayerNormalizationOp, brain(3, 65), brain(65), brain(65)),
    "matmul": Case(MatMulOp, brain(2, 9, 33), brain(33, 20), brain(20)),
    "max_pool": Case(MaxPoolOp, brain(1, 8, 8, 20), kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
    "pad": Case(PadOp, brain(3, 4), pads=(1, 0, 0, 2)),
    "reduce": Case(ReduceMeanOp, brain(3, 700), axes=(1,)),
    "softmax": Case(SoftmaxOp, brain(3, 37)),
    "top_k": Case(TopKOp, brain(3, 37), k=4),
    "transpose": Case(TransposeOp, brain(3, 4, 5), permutation=(2, 0, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_family(name: str):
    check_all([CASES[name]], tolerance=3e-2)


def nearest(values: np.ndarray) -> np.ndarray:
    """The bfloat16 nearest to each double, ties to even, found among its neighbours."""
    bits = values.astype(np.float32).view(np.int32) >> 16
    around = [(bits + step).astype(np.uint16).view(KIND) for step in (-1, 0, 1)]
    distances = np.array([np.abs(found.astype(np.float64) - values) for found in around])
    even = np.array([found.view(np.uint16) % 2 for found in around])
    best = np.lexsort((even, distances), axis=0)[0]
    return np.array(around)[best, np.arange(values.size)]


@pytest.mark.parametrize("target", runnable_targets())
def test_numbers_between_two_are_rounded_once(target: str):
    low = (np.arange(0x3F00, 0x4100, dtype=np.uint16)).view(KIND).astype(np.float64)
    between = (low[1:] + low[:-1]) / 2
    doubles = np.concatenate([low, between, between * (1 + 1e-13), between * (1 - 1e-13)])
    integers = np.array([257, 258, 259, 16842753, 16842752, 16842751, 2**31 - 1, -16842753], np.int64)
    kind = ELEMENT_TYPES[BFLOAT16]
    arrays = [doubles, -doubles, doubles.astype(np.float32), integers, integers.astype(np.int32)]
    module, inputs = module_of(*(Case(CastOp, array, to=kind) for array in arrays))
    for results in (run_function(module.clone(), inputs), compile_module(module, target).run(inputs)):
        for number, array in enumerate(arrays):
            exact = array.astype(np.float64)
            np.testing.assert_array_equal(results[f"out{number}"], np.copysign(nearest(np.abs(exact)), exact))


def test_special_numbers_stay():
    x = np.array([np.inf, -np.inf, np.nan, 3.4e38, -0.0, 1e-40], np.float32)
    for target in runnable_targets():
        check(CastOp, x, to=ELEMENT_TYPES[BFLOAT16], target=target)
        check(CastOp, x.astype(KIND), to=ELEMENT_TYPES["float64"], target=target)


MODEL = """
glow_high.placeholder @x : tensor<2x3xbf16> {input}
glow_high.placeholder @y : tensor<2x2xbf16> {output}
glow_high.constant @w : tensor<3x2xbf16> {value = dense<[[1.0, 2.0], [0.5, 4.0], [-1.0, 0.25]]> : tensor<3x2xbf16>}
glow_high.func @main(@x, @y) {
  %x = glow_high.get @x : tensor<2x3xbf16>
  %w = glow_high.get @w : tensor<3x2xbf16>
  %0 = glow_high.matmul %x, %w : tensor<2x2xbf16>
  glow_high.save %0, @y
}
"""


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_session_takes_and_gives_arrays_of_bfloat16(backend: str, tmp_path: Path):
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    session = InferenceSession(path, backend=backend)
    x = np.array([[1, 2, 3], [4, 5, 6]]).astype(KIND)
    (y,) = session.run(None, {"x": x})
    assert session.get_inputs()[0].type == "tensor(bfloat16)"
    assert y.dtype == KIND
    np.testing.assert_array_equal(y.astype(np.float64), [[-1, 10.75], [0.5, 29.5]])
