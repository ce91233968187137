"""
Products by a matrix of the call whose panels are packed one by one, with one thread: the bits are those of a matrix
that is packed as a whole, as several threads do.
"""

from __future__ import annotations

import numpy as np
import pytest
from execute import runnable_targets
from onnx import TensorProto, helper

from glow_mlir import InferenceSession

TARGETS = [name for name in ("avx2", "avx512", "neon") if name in runnable_targets()] or ["host"]


def product(rows: int, depth: int, columns: int, is_transposed: bool, kind: int = TensorProto.FLOAT) -> bytes:
    """The model of a product by a matrix of the call, to which another matrix of the call is added."""
    shapes = {"x": [rows, depth], "w": [columns, depth] if is_transposed else [depth, columns], "a": [rows, columns]}
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["p"], transB=int(is_transposed)),
        helper.make_node("Sub", ["a", "p"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", kind, [rows, columns])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("accuracy", ["default", "strict"])
@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(17, 1, 64), (40, 301, 83), (128, 64, 200), (23, 70, 10), (97, 130, 256)]
)
def test_panels_have_the_bits_of_the_whole_matrix(
    rows: int, depth: int, columns: int, is_transposed: bool, accuracy: str, target: str
) -> None:
    random = np.random.default_rng(rows)
    shapes = {"x": (rows, depth), "w": (columns, depth) if is_transposed else (depth, columns), "a": (rows, columns)}
    given = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    model = product(rows, depth, columns, is_transposed)
    options = {"target": target, "accuracy": accuracy}
    one, two = (InferenceSession(model, threads=threads, **options).run(None, given)[0] for threads in (1, 2))
    right = given["w"].T if is_transposed else given["w"]
    np.testing.assert_allclose(one, given["a"] - given["x"].astype(np.float64) @ right, 1e-3, 1e-3)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "columns"])
def test_products_of_doubles_and_halves_are_right(is_transposed: bool) -> None:
    random = np.random.default_rng(0)
    for kind, dtype, tolerance in ((TensorProto.DOUBLE, np.float64, 1e-9), (TensorProto.FLOAT16, np.float16, 5e-2)):
        given = {
            "x": random.standard_normal((33, 65)).astype(dtype),
            "w": random.standard_normal((70, 65) if is_transposed else (65, 70)).astype(dtype),
            "a": random.standard_normal((33, 70)).astype(dtype),
        }
        session = InferenceSession(product(33, 65, 70, is_transposed, kind), threads=1)
        right = (given["w"].T if is_transposed else given["w"]).astype(np.float64)
        expected = given["a"].astype(np.float64) - given["x"].astype(np.float64) @ right
        np.testing.assert_allclose(session.run(None, given)[0], expected, tolerance, tolerance)


def test_one_panel_is_in_memory() -> None:
    session = InferenceSession(product(128, 784, 512, False), threads=1)
    assert session.executable.activation_bytes < 784 * 512 * 4 // 2
