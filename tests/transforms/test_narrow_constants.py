"""Constants that are stored narrower than they are used: no call widens them, and results are those of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from glow_mlir import InferenceSession
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model

DEPTH, COLUMNS = 1024, 288
"""Widened to f32, a matrix of so many elements is larger than what `fold-constants` always folds."""

Arrays = Mapping[str, np.ndarray]
RANDOM = np.random.default_rng(46)


def quantized(dtype: str, scales: int, zero: int | None = None) -> Arrays:
    """Quantized weights [DEPTH, COLUMNS], with so many scales, or one without an axis, and zero points."""
    kind = np.dtype(dtype)
    bounds = np.iinfo(kind)
    low, high = int(bounds.min), int(bounds.max)
    arrays: dict[str, np.ndarray] = {"w": RANDOM.integers(low, high, (DEPTH, COLUMNS), kind, endpoint=True)}
    arrays["s"] = np.float32(0.01) * RANDOM.random(scales or (), np.float32) + np.float32(0.001)
    if zero is not None:
        arrays["z"] = np.full(scales or (), zero, kind)
    return arrays


def model(nodes: list[onnx.NodeProto], x: np.ndarray, arrays: Arrays) -> onnx.ModelProto:
    """The model of some nodes from `x` to `y`, with initializers."""
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "graph", [given], [result], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def node(kind: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
    """A node on values named by words."""
    return helper.make_node(kind, operands.split(), [result], **attributes)


HALF = (RANDOM.standard_normal((DEPTH, COLUMNS)) / 32).astype(np.float16)

WEIGHTS: Mapping[str, Callable[[], tuple[list[onnx.NodeProto], Arrays]]] = {
    "f16": lambda: ([node("Cast", "w", "c", to=TensorProto.FLOAT)], {"w": HALF}),
    "f16 scaled": lambda: (
        [node("Cast", "w", "v", to=TensorProto.FLOAT), node("Mul", "v s", "c")],
        {"w": HALF, "s": RANDOM.random(COLUMNS, np.float32)},
    ),
    "int8": lambda: ([node("DequantizeLinear", "w s", "c")], quantized("int8", 0)),
    "uint8 with a zero point": lambda: ([node("DequantizeLinear", "w s z", "c")], quantized("uint8", 0, 117)),
    "int8 by column": lambda: (
        [node("DequantizeLinear", "w s z", "c", axis=1)],
        quantized("int8", COLUMNS, -3),
    ),
    "int8 by row": lambda: ([node("DequantizeLinear", "w s", "c", axis=0)], quantized("int8", DEPTH)),
    "quantized f32": lambda: (
        [node("QuantizeLinear", "w s z", "q"), node("DequantizeLinear", "q s z", "c")],
        {"w": HALF.astype(np.float32), "s": np.float32(0.002), "z": np.int8(1)},
    ),
    "tiled": lambda: (
        [node("Tile", "w r", "c")],
        {"w": HALF.astype(np.float32)[:, : COLUMNS // 4], "r": np.array([1, 4])},
    ),
}


def check(proto: onnx.ModelProto, x: np.ndarray) -> None:
    """Compare a session with the reference, and look for operators of constants that are left."""
    (wanted,) = cast("list[np.ndarray]", ReferenceEvaluator(proto).run(None, {"x": x}))
    found = InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, wanted, 2e-4, 2e-4)
    lowered = str(Compilation(import_model(proto)).run("lowered"))
    assert not any(
        f"glow_high.{name} " in lowered for name in ("cast", "dequantize", "tile", "blockwise_dequantize")
    ), lowered


@pytest.mark.parametrize("rows", [1, 17])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_products(weights: str, rows: int) -> None:
    nodes, arrays = WEIGHTS[weights]()
    x = RANDOM.standard_normal((rows, DEPTH), np.float32)
    check(model([*nodes, node("MatMul", "x c", "y")], x, arrays), x)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("is_turned", [False, True])
def test_products_of_few_rows_read_halves(kind: int, is_turned: bool) -> None:
    """Memory holds the weights as narrow as they are; with many rows they are widened."""
    element = helper.tensor_dtype_to_np_dtype(kind)
    weights = HALF.astype(element)
    transposed = [node("Transpose", "v", "c", perm=[1, 0])] if is_turned else [node("Identity", "v", "c")]
    arrays = {"w": np.ascontiguousarray(weights.T) if is_turned else weights}
    for rows in (1, 4, 64):
        x = RANDOM.standard_normal((rows, DEPTH), np.float32)
        nodes = [node("Cast", "w", "v", to=TensorProto.FLOAT), *transposed, node("MatMul", "x c", "y")]
        proto = model(nodes, x, arrays)
        found = InferenceSession(proto.SerializeToString()).run(None, {"x": x})[0]
        np.testing.assert_allclose(found, x @ weights.astype(np.float32), 2e-4, 2e-4)
        lowered = str(Compilation(import_model(proto)).run("lowered"))
        name = "f16" if kind == TensorProto.FLOAT16 else "bf16"
        assert (f"element = {name}" in lowered) == (rows < 64), lowered


def test_a_turned_matrix() -> None:
    arrays = {**quantized("int8", 0), "b": RANDOM.standard_normal(DEPTH, np.float32)}
    x = RANDOM.standard_normal((3, COLUMNS), np.float32)
    nodes = [node("DequantizeLinear", "w s", "c"), node("Gemm", "x c b", "y", transB=1)]
    check(model(nodes, x, arrays), x)


def test_filters() -> None:
    filters = (RANDOM.standard_normal((96, 64, 7, 7)) / 50).astype(np.float16)
    x = RANDOM.standard_normal((1, 64, 9, 9), np.float32)
    check(model([node("Cast", "w", "c", to=TensorProto.FLOAT), node("Conv", "x c", "y")], x, {"w": filters}), x)


def test_tables_with_other_readers() -> None:
    """Tables whose rows are gathered alone stay narrow: `raise-gathers`."""
    nodes, arrays = WEIGHTS["f16 scaled"]()
    x = RANDOM.integers(0, DEPTH, (5,))
    nodes += [node("Gather", "c x", "g"), node("Slice", "c begin end", "p"), node("Add", "g p", "y")]
    check(model(nodes, x, {**arrays, "begin": np.array([0]), "end": np.array([5])}), x)


@pytest.mark.parametrize("columns", [1, 3])
def test_products_of_few_columns(columns: int) -> None:
    """A matrix of one column has one scale, which is no splat to its kernel."""
    x = RANDOM.standard_normal((2, 64), np.float32)
    arrays = {"w": RANDOM.integers(-128, 128, (64, columns), np.int8), "s": np.float32(0.01)}
    check(model([node("DequantizeLinear", "w s", "c"), node("MatMul", "x c", "y")], x, arrays), x)


def test_products_of_no_depth() -> None:
    x = np.zeros((2, 0), np.float32)
    arrays = {"w": np.zeros((0, 3), np.int8), "s": np.float32(0.01)}
    check(model([node("DequantizeLinear", "w s", "c"), node("MatMul", "x c", "y")], x, arrays), x)


def test_infinite_rows_stay_infinite() -> None:
    """Zero points are subtracted from the weights, not from the result."""
    x = RANDOM.random((2, 64), np.float32)
    x[:, 3] = np.inf
    arrays = {"w": RANDOM.integers(120, 130, (64, 8), np.uint8), "s": np.float32(0.01), "z": np.uint8(117)}
    check(model([node("DequantizeLinear", "w s z", "c"), node("MatMul", "x c", "y")], x, arrays), x)
