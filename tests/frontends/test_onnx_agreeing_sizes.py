"""Sizes that data decides where a number stands, or another size: taken to be equal, which each call checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from breadth import share
from onnx import parser
from onnx_models import refusal

import glow_mlir
from glow_mlir.errors import ExecutionError, GlowWarning, ModelError

SIGNATURE = "(float[6, 4] x, bool[6] c, bool[6] d, float[2, 4] w, int64[2, 4] i) => (float y)"

CASES = {
    "elementwise": "y = Add (k, w)",
    "elementwise, the number first": "y = Sub (w, k)",
    "three operands": "z = Less (k, w) y = Where (z, k, w)",
    "several operands": "y = Sum (k, w, k)",
    "two counts": "y = Mul (k, m)",
    "two counts and a number": "z = Mul (k, m) y = Max (z, w, k)",
    "along the last axis": "t = Transpose (k) v = Transpose (w) y = Add (t, v)",
    "columns of a product": "t = Transpose (k) y = MatMul (t, w)",
    "rows of a product": "t = Transpose (w) y = MatMul (t, k)",
    "products of two counts": "t = Transpose (k) y = MatMul (t, m)",
    "batch of a product": """
        a = Constant <value_ints = [2]> () b = Unsqueeze (k, a) o = Constant <value_ints = [1]> ()
        v = Unsqueeze (w, o) y = MatMul (b, v)
    """,
    "integers of a product": """
        n = Cast <to = 7> (k) t = Transpose (i) p = MatMul (t, n) y = Cast <to = 1> (p)
    """,
    "Gemm": "y = Gemm <transA = 1> (k, w)",
    "Einsum": 'y = Einsum <equation = "ij,ik->jk"> (k, w)',
    "Einsum of an ellipsis": 'y = Einsum <equation = "...j,...j->..."> (k, w)',
    "Concat": "y = Concat <axis = 1> (k, w)",
    "Concat of two counts": "y = Concat <axis = 1> (k, w, m)",
    "Expand": "s = Constant <value_ints = [2, 4]> () y = Expand (k, s)",
    "Expand to a count": "s = Shape (k) y = Expand (w, s)",
    "Expand to more axes": "s = Constant <value_ints = [3, 2, 4]> () y = Expand (k, s)",
    "Reshape": "s = Constant <value_ints = [4, 2]> () y = Reshape (k, s)",
    "Reshape to rows": "s = Constant <value_ints = [8, -1]> () y = Reshape (k, s)",
    "Reshape to the rows of others": """
        r = Shape <end = 1> (m) t = Constant <value_ints = [-1]> () s = Concat <axis = 0> (r, t) y = Reshape (k, s)
    """,
    "ReverseSequence": """
        n = Constant <value_ints = [2, 3]> () y = ReverseSequence <batch_axis = 0, time_axis = 1> (k, n)
    """,
    "GatherElements": "y = GatherElements <axis = 1> (k, i)",
    "GatherND": """
        z = Constant <value_ints = [1, 0]> () o = Constant <value_ints = [1]> () n = Unsqueeze (z, o)
        y = GatherND <batch_dims = 1> (k, n)
    """,
    "ScatterElements": "y = ScatterElements <axis = 1> (k, i, w)",
    "ScatterND": "n = Constant <value = int64[2, 1] {5, 0}> () y = ScatterND (x, n, k)",
    "Scan": """
        z = Constant <value_float = 0.0> () f = Scan <num_scan_inputs = 2, body = step (float a, float[4] p, float[4] q)
            => (float b, float[4] r) { r = Mul (p, q) s = ReduceSum <keepdims = 0> (r) b = Add (a, s) }> (z, k, w)
    """.replace("f = Scan", "f, y = Scan"),
    "state of a Scan": """
        y = Scan <num_scan_inputs = 1, body = step (float[2, 4] a, float[4] p) => (float[2, 4] b) {
            r = Compress <axis = 0> (x, c) b = Add (r, p)
        }> (w, x)
    """,
    "PRelu": "o = Constant <value_ints = [1]> () v = ReduceMean (w, o) y = PRelu (k, v)",
    "channels of a convolution": """
        o = Constant <value_ints = [0]> () b = Unsqueeze (k, o)
        f = Constant <value = float[3, 2, 1] {1, 2, 3, 4, 5, 6}> () y = Conv (b, f)
    """,
    "channels of codes": """
        f = Constant <value = float[2] {0.5, 0.25}> () z = Constant <value = int8[2] {0, 1}> ()
        q = QuantizeLinear <axis = 0> (k, f, z) y = DequantizeLinear <axis = 0> (q, f, z)
    """,
    "TopK": "n = Constant <value_ints = [2]> () y, places = TopK <axis = 0> (k, n)",
    "addend of Gemm": "t = Transpose (w) v = MatMul (w, t) y = Gemm <transB = 1> (w, k, v)",
    "scale of a normalization": """
        f = Constant <value = float[2] {1, 2}> () t = Transpose (k) y = LayerNormalization (t, f)
    """,
    "in a branch": """
        f = ReduceMax <keepdims = 0> (x) z = Constant <value_float = 0.0> () g = Greater (f, z)
        y = If (g) <
            then_branch = one () => (float t) { t = Add (k, w) }, else_branch = other () => (float e) { e = Sub (k, w) }
        >
    """,
}
"""Nodes on `k` and `m`, of as many rows as data says, and on `w`, of two."""


def model(nodes: str) -> onnx.ModelProto:
    """A model of rows that conditions choose of `x`, in the syntax of onnx's parser."""
    chosen = "k = Compress <axis = 0> (x, c) m = Compress <axis = 0> (x, d)"
    source = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> graph {SIGNATURE} {{ {chosen} {nodes} }}')
    source.graph.output[0].type.tensor_type.ClearField("shape")
    for node in source.graph.node:
        for attribute in node.attribute:
            for output in attribute.g.output:
                output.type.tensor_type.ClearField("shape")
    return source


def given(first: list[int], second: list[int]) -> dict[str, np.ndarray]:
    """A call that chooses those rows."""
    rng = np.random.default_rng(0)
    conditions = [np.isin(np.arange(6), rows) for rows in (first, second)]
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((6, 4), (2, 4)))
    return {"x": x, "c": conditions[0], "d": conditions[1], "w": w, "i": rng.integers(0, 4, (2, 4))}


def outcome(run: Callable[[], Any]) -> np.ndarray | None:
    """The only result of a call; `None` where it fails."""
    try:
        (found,) = run()
    except ExecutionError:
        return None
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        return None
    return found


ASSUMED = r"the match of sizes .* and .* depends on data; they are assumed to match, which each call checks"
"""The warning of each such model."""


def opened(source: onnx.ModelProto, backend: str = "cpu") -> glow_mlir.InferenceSession:
    """A session of a model with such sizes, which warns of them in one line."""
    with pytest.warns(GlowWarning) as told:
        session = glow_mlir.InferenceSession(source, cache=False, backend=backend)
    (line,) = [str(item.message) for item in told]
    assert re.search(ASSUMED, line)
    return session


FITTING = [([1, 3], [0, 5]), ([0, 5], [2, 4])]
"""Rows as many as all numbers say."""
OTHERS = [([1, 2, 3, 4], [1, 2]), ([1, 2, 3], [0, 1])]
"""Rows that fit nothing where equal sizes are asked for."""
LENIENT = {"GatherElements", "Reshape to rows", "Reshape to the rows of others", "ScatterElements", "TopK"}
"""Operators that take these as well, as onnxruntime does."""


@pytest.mark.parametrize("case", share(list(CASES), "agreeing sizes"))
def test_sizes_of_data_agree_with_numbers(case: str) -> None:
    """A call gives what onnxruntime gives, or fails where that does; one row is taken for many where all are."""
    source = model(CASES[case])
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    sessions = [opened(source, backend) for backend in ("cpu", "interpreter")]
    for rows in (*FITTING, *OTHERS, ([2], [2])):
        expected = outcome(lambda rows=rows: cast("list[np.ndarray]", peer.run(None, given(*rows))))
        for session in sessions:
            found = outcome(lambda session=session, rows=rows: session.run(None, given(*rows)))
            if rows in FITTING:
                assert found is not None
            if rows in OTHERS and case not in LENIENT:
                assert found is None
            if found is not None:
                assert expected is not None
                np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)


def test_a_call_of_other_sizes_fails_in_one_line() -> None:
    for backend in ("cpu", "interpreter"):
        session = opened(model(CASES["elementwise"]), backend)
        with pytest.raises(ExecutionError) as caught:
            session.run(None, given([1, 2, 3], []))
        assert str(caught.value) == "node 'y': the sizes k.count and 2 have to be equal"
        assert session.run(None, given([3, 4], []))[0].shape == (2, 4)


def test_the_strict_refuse_sizes_that_data_decides() -> None:
    for case in ("elementwise", "Expand", "Concat"):
        line = refusal(model(CASES[case]), ModelError, strict=True)
        assert re.search(ASSUMED.partition(";")[0] + r" \(hint: with strict=False they are assumed to match", line)


def test_dimensions_of_inputs_are_still_held_to_numbers() -> None:
    graph = "graph (float[n, 4] x, float[2, 4] w) => (float[n, 4] y) { y = Add (x, w) }"
    source = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')
    assert "do not broadcast" in refusal(source, ModelError, dimensions={"n": (2, 5)})


@pytest.mark.parametrize("kind", ["float16", "double", "int32", "int64", "uint32"])
@pytest.mark.parametrize("product", ["MatMul (t, k)", "MatMul (k, t)"])
def test_products_of_all_types_go_over_sizes_that_data_decides(kind: str, product: str) -> None:
    source = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> graph ({kind}[70, 37] x, bool[70] c) => ({kind}[M, N] y) {{
            k = Compress <axis = 0> (x, c) t = Transpose (k) y = {product}
        }}"""
    )
    session = glow_mlir.InferenceSession(source, cache=False)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (70, 37)).astype(kind)
    for count in (0, 1, 33, 70):
        c = np.arange(70) < count
        rows = x[c].astype(np.int64)
        expected = rows.T @ rows if product.endswith("(t, k)") else rows @ rows.T
        np.testing.assert_array_equal(session.run(None, {"x": x, "c": c})[0], expected.astype(kind), strict=True)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_products_of_bytes_go_over_sizes_that_data_decides(kind: str) -> None:
    source = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> graph ({kind}[70, 37] x, bool[70] c) => (int32[M, N] y) {{
            k = Compress <axis = 0> (x, c) t = Transpose (k) y = MatMulInteger (t, k)
        }}"""
    )
    x = np.random.default_rng(0).integers(0, 100, (70, 37)).astype(kind)
    c = np.arange(70) % 3 == 0
    (found,) = glow_mlir.InferenceSession(source, cache=False).run(None, {"x": x, "c": c})
    np.testing.assert_array_equal(found, x[c].T.astype(np.int32) @ x[c].astype(np.int32), strict=True)
