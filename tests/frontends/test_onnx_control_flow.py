"""If, Loop and Scan of ONNX give what onnxruntime computes, in the interpreter and as machine code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import numpy as np
import onnx
import onnxruntime
import pytest
from control_flow_models import LSTM_BODIES, greedy_decoder, lstm, mandelbrot
from execute import compile_module
from onnx import parser
from onnx_models import refusal

from glow_mlir.dialects.glow_high.control_flow import IfOp
from glow_mlir.dialects.glow_high.loop import LoopOp
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function

X = np.array([[1, -2], [3, -4], [-5, 6]], np.float32)


def model(signature: str, body: str, opset: int = 21, functions: str = "") -> onnx.ModelProto:
    """A model in the syntax of onnx's parser."""
    header = f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]>'
    return parser.parse_model(f"{header} graph {signature} {{ {body} }} {functions}")


def check(source: onnx.ModelProto, *cases: Mapping[str, np.ndarray], atol: float = 0.0) -> None:
    """Compare the results of a model with onnxruntime's; compiled once for all cases."""
    module = import_model(source)
    program = compile_module(module.clone())
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    for given in cases:
        expected = cast(list[np.ndarray], peer.run(None, dict(given)))
        for results in (run_function(module, given), program.run(given)):
            for found, wanted in zip(results.values(), expected, strict=True):
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=atol)


def kinds(source: onnx.ModelProto) -> list[type]:
    """The branches and loops of what a model becomes, those inside others included."""
    return [type(op) for op in import_model(source).walk() if isinstance(op, IfOp | LoopOp)]


# ---- If


def test_branches_see_what_is_around_them() -> None:
    # Both branches ask for an initializer that comes first in one of them, and that is used behind them, too.
    source = model(
        "(float[3, 2] x, bool c, bool d) => (float[3, 2] y, float[3, 2] z) <float[2] w = {2, 3}>",
        """
        n = Neg (x)
        y, u = If (c) <
            then_branch = one () => (float[3, 2] a, float[3, 2] b) {
                a = Mul (n, w)
                b = If (d) <
                    then_branch = inner () => (float[3, 2] e) { e = Add (a, w) },
                    else_branch = other () => (float[3, 2] f) { f = Identity (n) }
                >
            },
            else_branch = two () => (float[3, 2] g, float[3, 2] h) {
                g = Add (x, w)
                h = Abs (x)
            }
        >
        z = Mul (u, w)
        """,
    )
    assert kinds(source) == [IfOp, IfOp]
    check(source, *({"x": X, "c": np.array(c), "d": np.array(d)} for c in (True, False) for d in (True, False)))


def test_a_condition_of_one_element_decides() -> None:
    source = model(
        "(float[2] x, bool[1] c) => (float[2] y)",
        """
        y = If (c) <
            then_branch = one () => (float[2] a) { a = Neg (x) },
            else_branch = two () => (float[2] b) { b = Abs (x) }
        >
        """,
    )
    check(source, *({"x": X[0], "c": np.array([c])} for c in (True, False)))


@pytest.mark.parametrize(
    ("branch", "error", "words"),
    [
        ("b = Concat <axis = 0> (x, x)", UnsupportedError, r"result 0 has the shape \(2,\) in one branch, \(4,\) in"),
        ("b = Cast <to = 11> (x)", ModelError, "result 0 is of f32 in one branch, of f64 in the other"),
        ("b = NoSuch (x)", GlowError, "NoSuch"),
    ],
)
def test_branches_that_differ_are_refused(branch: str, error: type[GlowError], words: str) -> None:
    source = model(
        "(float[2] x, bool c) => (float[2] y)",
        f"""
        y = If (c) <
            then_branch = one () => (float[2] a) {{ a = Neg (x) }},
            else_branch = two () => (float[2] b) {{ {branch} }}
        >
        """,
    )
    assert re.search(words, refusal(source, error))


# ---- Loop

COUNTING = """
    y = Loop ({bounds}, x) <
        body = step (int64 i, bool c, float[2] a) => (bool go, float[2] b) {{
            one = Constant <value_float = 1.0> ()
            f = Cast <to = 1> (i)
            p = Mul (a, w)
            q = Add (p, f)
            b = Add (q, one)
            {end}
        }}
    >
"""


@pytest.mark.parametrize(
    ("bounds", "end"),
    [
        ("n, d", "go = Identity (c)"),
        (
            "n, d",
            "s = ReduceSum <keepdims = 0> (b) limit = Constant <value_float = 40.0> () go = Less (s, limit)",
        ),
        ('"", d', "s = ReduceSum <keepdims = 0> (b) limit = Constant <value_float = 40.0> () go = Less (s, limit)"),
        ('n, ""', "go = Constant <value = bool {1}> ()"),
        ('n, ""', "go = Constant <value = bool {0}> ()"),
    ],
)
def test_loops_end_by_their_number_of_trips_and_their_condition(bounds: str, end: str) -> None:
    source = model(
        "(float[2] x, int64 n, bool d) => (float[2] y) <float[2] w = {2, 0.5}>", COUNTING.format(bounds=bounds, end=end)
    )
    assert kinds(source) == [LoopOp]
    given = [{"x": X[0], "n": np.array(n), "d": np.array(True)} for n in (0, 1, 4)]
    check(source, *given, *([{"x": X[0], "n": np.array(4), "d": np.array(False)}] if "d" in bounds else []))


STACKING = """
    a, rows, index = Loop (m, t, x) <
        body = step (int64 i, bool c, float[3, 2] before) => (bool go, float[3, 2] after, float[2] row, int64 j) {
            one = Constant <value_ints = [1]> ()
            row = Gather <axis = 0> (before, i)
            after = Neg (before)
            j = Mul (i, i)
            go = Identity (c)
        }
    >
"""


ENDING = STACKING.replace("go = Identity (c)", "u = ReduceMax <keepdims = 0> (row) go = Less (u, w)")
"""The same, up to the first row with a number that is not below `w`."""


@pytest.mark.parametrize("trips", [3, 1, 0])
def test_rows_of_a_known_number_of_trips_are_stacked(trips: int) -> None:
    source = model(
        f"(float[3, 2] x) => (float[3, 2] a, float[N, 2] rows, int64[N] index) <int64 m = {{{trips}}}, bool t = {{1}}>",
        STACKING,
    )
    assert kinds(source) == ([LoopOp] if trips else [])
    check(source, {"x": X})


def test_loops_in_loops_in_functions_are_loops() -> None:
    source = model(
        "(float[2] x, int64 n) => (float[2] y)",
        "y = local.twice (x, n)",
        functions="""
        <domain: "local", opset_import: ["": 21]> twice (v, count) => (r) {
            k = Add (v, v)
            r = Loop (count, "", v) <
                body = outer (int64 i, bool c, float[2] a) => (bool go, float[2] b) {
                    b = Loop (i, "", a) <
                        body = inner (int64 j, bool d, float[2] e) => (bool more, float[2] f) {
                            f = Add (e, k)
                            more = Identity (d)
                        }
                    >
                    go = Identity (c)
                }
            >
        }
        """,
    )
    assert kinds(source) == [LoopOp, LoopOp]
    check(source, {"x": X[0], "n": np.array(4)}, {"x": X[0], "n": np.array(1)})


def test_trips_with_shapes_of_their_own_are_unrolled() -> None:
    source = model(
        "(float[2] x) => (float[8] y) <int64 m = {3}>",
        """
        y = Loop (m, "", x) <
            body = step (int64 i, bool c, float[N] a) => (bool go, float[M] b) {
                s = Mul (x, x)
                b = Concat <axis = 0> (a, s)
                go = Identity (c)
            }
        >
        """,
    )
    assert kinds(source) == []
    check(source, {"x": X[0]})


@pytest.mark.parametrize(
    ("bounds", "step", "words"),
    [
        ("n, t", "b = Concat <axis = 0> (a, a) go = Identity (c)", "the trip count of Loop depends on an input"),
        ('"", t', "b = Concat <axis = 0> (a, a) go = Less (n, i)", "the size of its results is unbounded"),
        ('"", ""', "b = Neg (a) go = Identity (c)", "Loop never terminates"),
        ("n, t", "b = Cast <to = 11> (a) go = Identity (c)", "is of f32, and of f64 after the first iteration"),
        ("x, t", "b = Neg (a) go = Identity (c)", "the number of trips is one element of i64"),
    ],
)
def test_loops_that_no_region_can_be_are_refused(bounds: str, step: str, words: str) -> None:
    source = model(
        "(float[2] x, int64 n) => (float[2] y) <bool t = {1}>",
        f"y = Loop ({bounds}, x) <body = step (int64 i, bool c, float[2] a) => (bool go, float[2] b) {{ {step} }}>",
    )
    assert words in refusal(source, GlowError)


def test_rows_whose_number_nothing_bounds_are_refused() -> None:
    signature = "(float[3, 2] x, {}) => (float[3, 2] a, float[N, 2] rows, int64[N] index) <{}>"
    computed = model(signature.format("int64 m", "bool t = {1}"), STACKING)
    assert "the trip count of Loop depends on an input" in refusal(computed, UnsupportedError)
    endless = ENDING.replace("Loop (m,", 'Loop ("",')
    source = model(signature.format("float w", "bool t = {1}"), endless)
    expected = "Loop: the size of its results is unbounded (hint: give the most that 'a.trips' may be, as a dimension)"
    assert expected in refusal(source, UnsupportedError)
    import_model(source, {"a.trips": 100})


# ---- Scan


def test_scans_go_along_any_axes_in_any_direction() -> None:
    source = model(
        "(float[2] s, float[2, 3] x, float[3, 2] w) => (float[2] last, float[2, 3] y, float[3, 2] z)",
        """
        last, y, z = Scan <
            num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
            scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
            body = step (float[2] a, float[2] b, float[2] v) => (float[2] c, float[2] d, float[2] e) {
                c = Add (a, b)
                d = Mul (c, v)
                e = Sub (v, s)
            }
        > (s, x, w)
        """,
    )
    assert kinds(source) == [LoopOp]
    check(source, {"s": X[0], "x": np.ascontiguousarray(X.T), "w": X + 1})


def test_scans_of_opset_8_go_over_each_element_of_a_batch() -> None:
    batched = model(
        "(float[2, 2] s, float[2, 3, 2] x) => (float[2, 2] last, float[2, 3, 2] y)",
        """
        last, y = Scan <
            num_scan_inputs = 1, directions = [1],
            body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {
                c = Add (a, b)
                d = Mul (c, b)
            }
        > ("", s, x)
        """,
        opset=8,
    )
    check(batched, {"s": X[:2], "x": np.stack([X, X * 2 + 1])})


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("num_scan_inputs = 2", "it goes over tensors of [2, 3] rows"),
        ("num_scan_inputs = 3", "3 of 2 operands are scanned"),
        ("num_scan_inputs = 1, scan_input_directions = [0, 1]", "scan_input_directions has 2 values, not 1"),
        ("num_scan_inputs = 1, scan_input_directions = [2]", "scan_input_directions of Scan has 2"),
    ],
)
def test_scans_that_contradict_themselves_are_refused(attributes: str, words: str) -> None:
    source = model(
        "(float[2] s, float[3, 2] x) => (float[2] y)",
        f"""
        y = Scan <{attributes},
            body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {{
                c = Add (a, b)
                d = Identity (b)
            }}
        > (s, x)
        """,
    )
    assert words in refusal(source, ModelError)


# ---- models


@pytest.mark.parametrize("form", LSTM_BODIES)
def test_an_lstm_is_the_same_as_operator_scan_and_loop(form: str) -> None:
    source = lstm(form, steps=5, batch=2, width=3, hidden=4)
    check(source, {"x": np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)}, atol=1e-6)


def test_decoding_ends_early() -> None:
    ending = greedy_decoder(8, vocabulary=6, width=4, end=3)
    compiled = compile_module(import_model(ending))
    counts = {int(compiled.run({"first": np.array([first])})["count"].item()) for first in range(6)}
    assert len(counts) > 1  # Some sequences are longer than others, none goes on for ever.
    check(ending, *({"first": np.array([first])} for first in range(6)))


def test_points_leave_mandelbrots_set() -> None:
    check(mandelbrot(9, trips=20), {"n": np.array(20)}, {"n": np.array(0)})


def test_a_loop_without_trips_computes_nothing() -> None:
    body = """
      s, rows = Loop <body = g (int64 i, bool c, float[2,2] a) => (bool d, float[2,2] e, float[2,2] f) {
        d = Identity(c)
        h = MatMul(x, w)
        e = Add(a, h)
        f = Identity(a)
      }> (m, t, x)
    """
    weights = "<int64 m = {0}, bool t = {1}, float[2, 2] w = {1, 2, 3, 4}>"
    check(model(f"(float[2, 2] x) => (float[2, 2] s, float[N, 2, 2] rows) {weights}", body), {"x": X[:2]})


def test_values_of_branches_may_have_the_names_of_later_ones() -> None:
    body = """
      y = If <
        then_branch = a () => (float[3, 2] t) { y = Add(x, x) t = Neg(y) },
        else_branch = b () => (float[3, 2] y) { y = Neg(x) }
      > (c)
    """
    source = model("(bool c, float[3, 2] x) => (float[3, 2] y)", body)
    check(source, {"c": np.array(True), "x": X}, {"c": np.array(False), "x": X})


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (3,)])
def test_a_loop_in_a_loop_may_carry_no_elements(shape: tuple[int, ...]) -> None:
    """State and scanned results of the inner loop are results of the outer one, too."""
    kind, pair, rows, pairs = (f"float[{','.join(map(str, (*front, *shape)))}]" for front in ((), (2,), (3,), (3, 2)))
    body = f"""
      s, rows, all = Loop <body = outer (int64 i, bool c, {kind} a) => (bool d, {kind} e, {kind} f, {pair} g) {{
        d = Identity(c)
        e, g = Loop <body = inner (int64 j, bool p, {kind} q) => (bool r, {kind} t, {kind} u) {{
          r = Identity(p)
          t = Add(q, x)
          u = Neg(t)
        }}> (two, , a)
        f = Mul(e, x)
      }}> (three, , x)
    """
    constants = "<int64 two = {2}, int64 three = {3}>"
    source = model(f"({kind} x) => ({kind} s, {rows} rows, {pairs} all) {constants}", body)
    check(source, {"x": np.ones(shape, np.float32)})
