"""Branches of If that a call does not take need not fit its sizes; a call that takes one fails in one line."""

from __future__ import annotations

from typing import cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import glow_mlir
from glow_mlir.errors import ExecutionError, GlowWarning, ModelError

BACKENDS = ("cpu", "interpreter")
BRANCHES = """
    y = If (c) <
        then_branch = four () => (float[n, 2] t) { t = MatMul (x, a) },
        else_branch = three () => (float[n, 2] e) { e = MatMul (x, b) }
    >
"""
"""Products with matrices of four rows, and of three."""


def model(signature: str, body: str) -> onnx.ModelProto:
    """A model in the syntax of onnx's parser, with two matrices of other sizes."""
    source = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> graph {signature} {{ {body} }}')
    rng = np.random.default_rng(0)
    for name, rows in (("a", 4), ("b", 3)):
        matrix = rng.integers(-4, 4, (rows, 2)).astype(np.float32)
        source.graph.initializer.append(numpy_helper.from_array(matrix, name))
    return source


def check(source: onnx.ModelProto, *cases: dict[str, np.ndarray]) -> None:
    """Compare the results of sessions with onnxruntime's, to the bit."""
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    for backend in BACKENDS:
        session = glow_mlir.InferenceSession(source, backend=backend, cache=False)
        for given in cases:
            expected = cast("list[np.ndarray]", peer.run(None, given))
            for found, wanted in zip(session.run(None, given), expected, strict=True):
                np.testing.assert_array_equal(found, wanted, strict=True)


def rows(count: int, width: int) -> np.ndarray:
    return np.arange(count * width, dtype=np.float32).reshape(count, width)


def test_an_input_that_decides_takes_the_branch_that_fits() -> None:
    """As voice detectors have one for each rate."""
    source = model(
        "(float[n, width] x, int64 rate) => (float[n, 2] y) <int64 high = {16000}>",
        f"c = Equal (rate, high) {BRANCHES}",
    )
    high, low = np.array(16000), np.array(8000)
    check(source, {"x": rows(5, 4), "rate": high}, {"x": rows(2, 3), "rate": low}, {"x": rows(1, 4), "rate": high})
    session = glow_mlir.InferenceSession(source, cache=False)
    with pytest.raises(ModelError, match="'y': MatMul: the operands' inner sizes differ: 4 and 3"):
        session.run(None, {"x": rows(2, 4), "rate": low})


OF_DATA = "zero = Constant <value_float = 0.0> () s = ReduceMax <keepdims = 0> (x) c = Greater (s, zero)"


UNFITTING = pytest.mark.filterwarnings("ignore:.*_branch does not fit the sizes")


def test_a_branch_that_does_not_fit_is_told() -> None:
    source = model("(float[n, width] x) => (float[n, 2] y)", f"{OF_DATA} {BRANCHES}")
    fault = r"'y': If: else_branch does not fit the sizes \(MatMul: .* differ: 4 and 3\)"
    with pytest.warns(GlowWarning, match=f"{fault}; a call that takes it fails"):
        glow_mlir.InferenceSession(source, cache=False).run(None, {"x": rows(5, 4)})
    with pytest.raises(ModelError, match=rf"{fault} \(hint: with strict=False a call that takes it fails\)"):
        glow_mlir.InferenceSession(source, cache=False, strict=True).run(None, {"x": rows(5, 4)})


@UNFITTING
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_fails_whose_data_takes_a_branch_that_does_not_fit(backend: str) -> None:
    source = model("(float[n, width] x) => (float[n, 2] y)", f"{OF_DATA} {BRANCHES}")
    check(source, {"x": rows(5, 4)}, {"x": -rows(5, 3)}, {"x": rows(1, 4)})
    session = glow_mlir.InferenceSession(source, cache=False, backend=backend)
    for x, branch in ((-rows(5, 4), "else_branch"), (rows(5, 3), "then_branch")):
        session.run(None, {"x": -x})
        with pytest.raises(ExecutionError, match=f"'y': {branch} does not fit the sizes"):
            session.run(None, {"x": x})


@UNFITTING
def test_results_of_the_branch_that_fits_may_be_as_large_as_data_says() -> None:
    branches = BRANCHES.replace("t = MatMul (x, a)", "m = MatMul (x, a) f = Greater (m, zero) t = NonZero (f)")
    branches = branches.replace("e = MatMul (x, b)", "m = MatMul (x, b) f = Less (m, zero) e = NonZero (f)")
    source = model(
        "(float[n, width] x) => (int64[2, N] y)", f"{OF_DATA} {branches.replace('float[n, 2]', 'int64[2, N]')}"
    )
    check(source, {"x": rows(5, 4)}, {"x": -rows(5, 3)})


def test_branches_inside_a_branch_need_not_fit_either() -> None:
    inner = BRANCHES.replace("y = If (c)", "w = If (d)")
    nodes = f"""
        d = Equal (rate, high)
        y = If (c) <
            then_branch = outer () => (float[n, 2] w) {{ {inner} }},
            else_branch = other () => (float[n, 2] v) {{ v = Neg (z) }}
        >
    """
    signature = "(float[n, width] x, float[n, 2] z, bool c, int64 rate) => (float[n, 2] y) <int64 high = {16000}>"
    cases = [(4, 16000, True), (4, 8000, False), (3, 8000, True), (7, 8000, False)]
    given = [{"x": rows(2, n), "z": rows(2, 2), "c": np.array(c), "rate": np.array(r)} for n, r, c in cases]
    check(model(signature, nodes), *given)


def test_branches_of_which_none_fits_are_refused() -> None:
    source = model("(float[n, width] x, bool c) => (float[n, 2] y)", BRANCHES)
    session = glow_mlir.InferenceSession(source, cache=False)
    with pytest.raises(ModelError, match="'t': MatMul: the operands' inner sizes differ: 5 and 4"):
        session.run(None, {"x": rows(2, 5), "c": np.array(True)})
