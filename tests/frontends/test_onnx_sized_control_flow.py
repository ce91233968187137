"""If, Loop and Scan with sizes that are known at run time only give what onnxruntime computes, on all backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from onnx_models import refusal

import glow_mlir
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.symbols import Dimension

BACKENDS = ("cpu", "interpreter")


def model(signature: str, body: str) -> onnx.ModelProto:
    """A model in the syntax of onnx's parser."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]> graph {signature} {{ {body} }}')


def check(source: onnx.ModelProto, bounds: Mapping[str, Dimension], *cases: Mapping[str, np.ndarray]) -> None:
    """Compare the results of a model with onnxruntime's; compiled once for all cases."""
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    for backend in BACKENDS:
        session = glow_mlir.InferenceSession(
            source.SerializeToString(), backend=backend, dimensions=bounds, cache=False
        )
        for given in cases:
            expected = cast("list[np.ndarray]", peer.run(None, dict(given)))
            for found, wanted in zip(session.run(None, dict(given)), expected, strict=True):
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def test_a_scan_goes_over_a_sequence_of_any_length() -> None:
    source = model(
        "(float[2, n, 3] x, float[n, 3] z, float[2, 3] a) => (float[2, 3] y, float[N, 2, 3] sums, float[2, N] tops)",
        """
        y, sums, tops = Scan <
            num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
            scan_output_axes = [0, 1], scan_output_directions = [1, 0],
            body = step (float[2, 3] before, float[2, 3] row, float[3] back)
            => (float[2, 3] after, float[2, 3] sum, float[2] top) {
                scaled = Mul (row, back)
                after = Add (before, scaled)
                sum = Identity (after)
                mean = ReduceMean <keepdims = 0> (z)
                largest = ReduceMax <keepdims = 0> (after, last_axis)
                top = Sub (largest, mean)
            }
        > (a, x, z)
        """,
    )
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "last_axis"))
    cases = [{"x": random(2, n, 3), "z": random(n, 3), "a": random(2, 3)} for n in (1, 4, 6)]
    check(source, {"n": (1, 6)}, *cases)


@pytest.mark.parametrize("end", ["go = Identity (c)", "u = ReduceMax <keepdims = 0> (after) go = Less (u, w)"])
def test_a_loop_takes_as_many_trips_as_a_tensor_has_rows(end: str) -> None:
    source = model(
        "(float[n, 3] x, float[3] start, float w) => (float[3] last, float[N, 3] rows, int64[N] squares, float total)",
        f"""
        sizes = Shape (x)
        zero = Constant <value_int = 0> ()
        count = Gather (sizes, zero)
        last, rows, squares = Loop (count, t, start) <
            body = step (int64 i, bool c, float[3] before) => (bool go, float[3] after, float[3] row, int64 j) {{
                own = Gather <axis = 0> (x, i)
                others = ReduceSum <keepdims = 0> (x, first_axis)
                product = Mul (own, others)
                after = Add (before, product)
                row = Neg (after)
                j = Mul (i, i)
                {end}
            }}
        >
        total = ReduceSum <keepdims = 0> (rows)
        """,
    )
    for name, value in (("first_axis", np.array([0])), ("t", np.array(True))):
        source.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    limits = np.array([-9, 0.7, 9], np.float32)
    cases = [{"x": random(n, 3), "start": random(3), "w": np.array(limit)} for n in (0, 1, 5) for limit in limits]
    check(source, {"n": (0, 5)}, *(cases if "w" in end else cases[::3]))


def test_a_loop_that_ends_early_stacks_a_row_of_each_trip() -> None:
    source = model(
        "(float[3, 2] x, float w, bool t) => (float[N, 2] rows, int64[N] squares, float[2] largest)",
        """
        most = Constant <value_int = 3> ()
        rows, squares = Loop (most, t) <
            body = step (int64 i, bool c) => (bool go, float[2] row, int64 j) {
                row = Gather <axis = 0> (x, i)
                j = Mul (i, i)
                top = ReduceMax <keepdims = 0> (row)
                go = Less (top, w)
            }
        >
        axis = Constant <value_ints = [0]> ()
        zeros = Constant <value = float[1, 2] {0, 0}> ()
        some = Concat <axis = 0> (rows, zeros)
        largest = ReduceMax <keepdims = 0> (some, axis)
        """,
    )
    x = np.array([[1, -2], [3, -4], [-5, 6]], np.float32)
    given = [{"w": np.array(w, np.float32), "t": np.array(t)} for w in (-9, 2, 9) for t in (True, False)]
    check(source, {}, *({"x": x, **case} for case in given))


def test_rows_of_different_sizes_are_refused() -> None:
    source = model(
        "(float[3, 4] x) => (float[N] rows)",
        """
        most = Constant <value_int = 3> ()
        rows = Loop (most, "") <
            body = step (int64 i, bool c) => (bool go, float[N] row) {
                own = Gather <axis = 0> (x, i)
                p = NonZero (own)
                t = Transpose (p)
                row = GatherND (own, t)
                go = Identity (c)
            }
        >
        """,
    )
    assert "rows of result 0 have sizes that depend on the iteration, as p.count" in refusal(source, UnsupportedError)


def test_branches_may_give_different_sizes() -> None:
    source = model(
        "(float[n, 3] x, float w) => (float[N, M] y, float[N] z, float[N] selected, int64[2] shape)",
        """
        top = ReduceMax <keepdims = 0> (x)
        c = Less (top, w)
        y, z, selected = If (c) <
            then_branch = one () => (float[2, 4] a, float[n] b, float[N] s) {
                a = Expand (w, small)
                b = ReduceMax <keepdims = 0> (x, last_axis)
                where = Greater (x, w)
                p = NonZero (where)
                t = Transpose (p)
                s = GatherND (x, t)
            },
            else_branch = two () => (float[n, 3] d, float[5] e, float[N] r) {
                d = Neg (x)
                e = Expand (w, five)
                r = Expand (w, five)
            }
        >
        shape = Shape (y)
        """,
    )
    for name, value in (("small", [2, 4]), ("five", [5]), ("last_axis", [1])):
        source.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    cases = [{"x": random(n, 3), "w": np.array(w, np.float32)} for n in (1, 2, 5) for w in (-9, 0.7, 9)]
    check(source, {"n": (1, 5)}, *cases)
