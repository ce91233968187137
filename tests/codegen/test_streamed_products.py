"""Products of few rows, or one column, by a matrix that is no constant: the bits are those of many rows."""

from __future__ import annotations

import numpy as np
import pytest
from execute import runnable_targets
from onnx import TensorProto, helper

from glow_mlir import InferenceSession

DEPTH, COLUMNS, MANY = 301, 83, 40

TARGET = "avx2" if "avx2" in runnable_targets() else "host"


def product(rows: int, columns: int, is_transposed: bool) -> bytes:
    """The model of a product of `rows` rows by a matrix of the call, with a bias of the call and a ReLU."""
    shapes = {"x": [rows, DEPTH], "w": [columns, DEPTH] if is_transposed else [DEPTH, columns], "b": [columns]}
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["p"], transB=int(is_transposed)),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("accuracy", ["default", "strict"])
@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("rows", [1, 7])
def test_few_rows_have_the_bits_of_many(rows: int, is_transposed: bool, accuracy: str) -> None:
    random = np.random.default_rng(rows)
    x = random.standard_normal((MANY, DEPTH), np.float32)
    w = random.standard_normal((COLUMNS, DEPTH) if is_transposed else (DEPTH, COLUMNS), np.float32)
    b = random.standard_normal(COLUMNS, np.float32)
    options = {"target": TARGET, **({} if accuracy == "default" else {"accuracy": accuracy})}
    results = [
        InferenceSession(product(count, COLUMNS, is_transposed), threads=threads, **options).run(
            None, {"x": x[:count], "w": w, "b": b}
        )[0]
        for count, threads in ((MANY, 1), (rows, 1), (rows, 2))
    ]
    np.testing.assert_allclose(
        results[0], np.maximum(x.astype(np.float64) @ (w.T if is_transposed else w) + b, 0), 1e-3, 1e-3
    )
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0][:rows])


@pytest.mark.parametrize("target", [*runnable_targets(), "sse2"])
@pytest.mark.parametrize(
    "types", [("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8")], ids="-".join
)
def test_sums_of_bytes_are_exact(types: tuple[str, str], target: str) -> None:
    random = np.random.default_rng(7)
    for rows, depth, columns in (
        (1, 301, 83),
        (2, 7, 64),
        (5, 38, 131),
        (8, 3, 20),
        (33, 1, 1),
        (35, 2, 1),
        (38, 9, 1),
    ):
        shapes = {"x": (types[0], [rows, depth]), "w": (types[1], [depth, columns])}
        inputs = {
            name: random.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
            for name, (kind, shape) in shapes.items()
        }
        graph = helper.make_graph(
            [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
            "graph",
            [
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in inputs.items()
            ],
            [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, columns])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (found,) = InferenceSession(model, target=target, threads=1 + rows % 2, cache=False).run(None, inputs)
        np.testing.assert_array_equal(found, inputs["x"].astype(np.int32) @ inputs["w"].astype(np.int32))
