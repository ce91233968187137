"""Loops as exporters write them: counters with an axis, and state and rows whose sizes no number bounds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
import pytest
from breadth import share
from onnx import parser

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import ExecutionError, OptionError
from glow_mlir.runtime.specializations import SpecializationLimits


def model(signature: str, body: str, opset: int = 18) -> onnx.ModelProto:
    """A model in the syntax of onnx's parser."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> graph {signature} {{ {body} }}')


def check(source: onnx.ModelProto, *cases: dict[str, Any], backend: str = "cpu") -> None:
    """Compare the results of a session with onnxruntime's, to the bit, shapes included."""
    session = InferenceSession(source, cache=False, backend=backend)
    peer = onnxruntime.InferenceSession(source.SerializeToString())
    for given in cases:
        expected = cast("list[np.ndarray]", peer.run(None, given))
        for found, wanted in zip(session.run(None, given), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


# ---- The number of the trip, and that it takes place


@pytest.mark.parametrize("number", ["int64", "int64[1]", "int64[N]"])
@pytest.mark.parametrize(("condition", "given"), [("bool", "bool"), ("bool[1]", "bool[1]")])
@pytest.mark.parametrize("trips", ["int64 n = {2}", "int64[1] n = {2}"])
def test_counters_and_conditions_have_the_axes_that_the_body_declares(
    number: str, condition: str, given: str, trips: str
) -> None:
    """PyTorch's exporter wrote them with an axis up to opset 10."""
    source = model(
        f"(float[3] x) => (float[3] y, int64 z, bool w) <{trips}, {given} yes = {{1}}>",
        f"""
        y, z, w = Loop (n, yes, x) <
            body = step ({number} i, {condition} c, float[3] a) => (bool go, float[3] b, int64 j, bool d) {{
                j = Identity (i)
                d = Identity (c)
                go = Identity (c)
                b = Neg (a)
            }}
        >
        """,
    )
    for output in source.graph.output:
        output.type.tensor_type.ClearField("shape")
    for output in source.graph.node[0].attribute[0].g.output:
        output.type.tensor_type.ClearField("shape")
    check(source, {"x": np.arange(3, dtype=np.float32)})


def test_a_body_may_squeeze_its_counter() -> None:
    source = model(
        "(float[4, 3] x, int64 n) => (float[3] y) <float[3] zero = {0, 0, 0}, bool yes = {1}>",
        """
        y = Loop (n, yes, zero) <
            body = step (int64[1] i, bool c, float[3] a) => (bool go, float[3] b) {
                place = Squeeze <axes = [0]> (i)
                row = Gather <axis = 0> (x, place)
                b = Add (a, row)
                go = Identity (c)
            }
        >
        """,
        opset=9,
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    check(source, {"x": x, "n": np.array(3)}, {"x": x, "n": np.array(0)})


# ---- Sizes that change from trip to trip, and rows whose number nothing bounds

BODIES = {
    "ids grow": (
        "(int64[1, s] x, int64 n) => (int64[1, t] y) <bool yes = {1}>",
        """
        y = Loop (n, yes, x) <
            body = step (int64 i, bool c, int64[1, a] before) => (bool go, int64[1, b] after) {
                sum = ReduceSum <keepdims = 0> (before)
                seven = Constant <value_int = 7> ()
                shape = Constant <value_ints = [1, 1]> ()
                id = Mod (sum, seven)
                one = Reshape (id, shape)
                after = Concat <axis = 1> (before, one)
                go = Identity (c)
            }
        >
        """,
    ),
    "ids grow up to one that ends": (
        "(int64[1, s] x, int64 n, int64 last) => (int64[1, t] y) <bool yes = {1}>",
        """
        y = Loop (n, yes, x) <
            body = step (int64 i, bool c, int64[1, a] before) => (bool go, int64[1, b] after) {
                sum = ReduceSum <keepdims = 0> (before)
                seven = Constant <value_int = 7> ()
                shape = Constant <value_ints = [1, 1]> ()
                id = Mod (sum, seven)
                one = Reshape (id, shape)
                after = Concat <axis = 1> (before, one)
                is_last = Equal (id, last)
                go = Not (is_last)
            }
        >
        """,
    ),
    "keys and values grow": (
        """(float[1, s, 4] keys, float[1, s, 4] values, float[1, 1, 4] x, int64 n)
        => (float[1, t, 4] k, float[1, t, 4] v, float[1, 1, 4] y) <bool yes = {1}>""",
        """
        k, v, y = Loop (n, yes, keys, values, x) <
            body = step (int64 i, bool c, float[1, a, 4] p, float[1, a, 4] q, float[1, 1, 4] h)
            => (bool go, float[1, b, 4] pp, float[1, b, 4] qq, float[1, 1, 4] hh) {
                pp = Concat <axis = 1> (p, h)
                negative = Neg (h)
                qq = Concat <axis = 1> (q, negative)
                turned = Transpose <perm = [0, 2, 1]> (pp)
                scores = MatMul (h, turned)
                largest = ReduceMax (scores)
                chosen = Equal (scores, largest)
                weights = Cast <to = 1> (chosen)
                hh = MatMul (weights, qq)
                go = Identity (c)
            }
        >
        """,
    ),
    "a while collects": (
        "(float x, float last) => (float y, float[n] z) <bool yes = {1}>",
        """
        y, z = Loop ("", yes, x) <
            body = step (int64 i, bool c, float before) => (bool go, float after, float row) {
                one = Constant <value_float = 1.0> ()
                after = Add (before, one)
                go = Less (before, last)
                row = Identity (after)
            }
        >
        """,
    ),
    "a while grows": (
        "(float[k] x, float last) => (float[n] y) <bool yes = {1}>",
        """
        y = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[a] before) => (bool go, float[b] after) {
                largest = ReduceMax <keepdims = 1> (before)
                one = Constant <value_floats = [1.0]> ()
                next = Add (largest, one)
                after = Concat <axis = 0> (before, next)
                is_below = Less (next, last)
                axis = Constant <value_ints = [0]> ()
                go = Squeeze (is_below, axis)
            }
        >
        """,
    ),
    "a list shrinks": (
        "(float[k] x, int64 n) => (float[m] y, float[r] z) <bool yes = {1}>",
        """
        y, z = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[a] before) => (bool go, float[b] after, float row) {
                row = ReduceMin <keepdims = 0> (before)
                others = Greater (before, row)
                after = Compress <axis = 0> (before, others)
                size = Size (after)
                go = Greater (size, n)
            }
        >
        """,
    ),
    "a list loses its first": (
        "(float[k] x) => (float[m] y) <bool yes = {1}>",
        """
        y = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[a] before) => (bool go, float[b] after) {
                one = Constant <value_ints = [1]> ()
                end = Constant <value_ints = [1000]> ()
                after = Slice (before, one, end)
                size = Size (after)
                least = Constant <value_int = 1> ()
                go = Greater (size, least)
            }
        >
        """,
    ),
    "doubles": (
        "(float[k] x, int64 n) => (float[m] y) <bool yes = {1}>",
        """
        y = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[a] before) => (bool go, float[b] after) {
                after = Concat <axis = 0> (before, before)
                size = Size (after)
                go = Less (size, n)
            }
        >
        """,
    ),
    "as often as data says": (
        "(float[k] x, float[k] d) => (float[m] y, float[t] z) <bool yes = {1}>",
        """
        places = NonZero (d)
        count = Shape <start = 1> (places)
        y, z = Loop (count, yes, x) <
            body = step (int64 i, bool c, float[a] before) => (bool go, float[b] after, float row) {
                one = Constant <value_floats = [1.0]> ()
                after = Concat <axis = 0> (before, one)
                row = ReduceSum <keepdims = 0> (before)
                go = Identity (c)
            }
        >
        """,
    ),
    "a while in a while": (
        "(float x, float last) => (float y, float[n] z) <bool yes = {1}>",
        """
        y, z = Loop ("", yes, x) <
            body = step (int64 i, bool c, float before) => (bool go, float after, float row) {
                one = Constant <value_float = 1.0> ()
                s, rows = Loop ("", c, before) <
                    body = inner (int64 j, bool d, float p) => (bool more, float q, float r) {
                        q = Add (p, one)
                        r = Mul (q, q)
                        more = Less (r, last)
                    }
                >
                row = ReduceSum <keepdims = 0> (rows)
                after = Add (before, one)
                go = Less (after, last)
            }
        >
        """,
    ),
}
BODIES.update(
    {
        "a mask grows along two axes": (
            "(float[a, a] x, int64 n) => (float[b, b] y) <bool yes = {1}>",
            """
        y = Loop (n, yes, x) <
            body = step (int64 i, bool c, float[p, p] before) => (bool go, float[q, q] after) {
                pads = Constant <value_ints = [0, 0, 1, 1]> ()
                one = Constant <value_float = 1.0> ()
                after = Pad (before, pads, one)
                sum = ReduceSum <keepdims = 0> (after)
                most = Constant <value_float = 40.0> ()
                go = Less (sum, most)
            }
        >
        """,
        ),
        "two lists grow by different steps": (
            "(float[a] x, float[a] z, float last) => (float[b] y, float[c] w) <bool yes = {1}>",
            """
        y, w = Loop ("", yes, x, z) <
            body = step (int64 i, bool c, float[p] s, float[q] t) => (bool go, float[r] u, float[v] h) {
                one = Constant <value_floats = [1.0]> ()
                two = Constant <value_floats = [1.0, 2.0]> ()
                u = Concat <axis = 0> (s, one)
                h = Concat <axis = 0> (two, t)
                sum = ReduceSum <keepdims = 0> (h)
                go = Less (sum, last)
            }
        >
        """,
        ),
        "a condition of the call": (
            "(float[a] x, bool first, float last) => (float[b] y, float[m] z)",
            """
        y, z = Loop ("", first, x) <
            body = step (int64 i, bool c, float[p] s) => (bool go, float[q] u, float row) {
                one = Constant <value_floats = [1.0]> ()
                u = Concat <axis = 0> (s, one)
                row = ReduceSum <keepdims = 0> (u)
                go = Less (row, last)
            }
        >
        """,
        ),
        "a while that grows in a while": (
            "(float[a] x, float last) => (float[b] y) <bool yes = {1}>",
            """
        y = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[p] s) => (bool go, float[q] u) {
                u = Loop ("", c, s) <
                    body = inner (int64 j, bool d, float[r] t) => (bool more, float[v] w) {
                        one = Constant <value_floats = [1.0]> ()
                        w = Concat <axis = 0> (t, one)
                        size = Size (w)
                        most = Add (i, i)
                        more = Less (size, most)
                    }
                >
                sum = ReduceSum <keepdims = 0> (u)
                go = Less (sum, last)
            }
        >
        """,
        ),
        "doubles as often as data says": (
            "(float[k] x, float[k] d) => (float[m] y) <bool yes = {1}>",
            """
        places = NonZero (d)
        count = Shape <start = 1> (places)
        y = Loop (count, yes, x) <
            body = step (int64 i, bool c, float[p] s) => (bool go, float[q] u) {
                u = Concat <axis = 0> (s, s)
                go = Identity (c)
            }
        >
        """,
        ),
        "five of what there is join": (
            "(float[k] x, float[k] d) => (float[m] y) <bool yes = {1}>",
            """
        places = NonZero (d)
        count = Shape <start = 1> (places)
        y = Loop (count, yes, x) <
            body = step (int64 i, bool c, float[p] s) => (bool go, float[q] u) {
                zero = Constant <value_ints = [0]> ()
                five = Constant <value_ints = [5]> ()
                first = Slice (s, zero, five)
                u = Concat <axis = 0> (s, first)
                go = Identity (c)
            }
        >
        """,
        ),
        "what is negative and small joins": (
            "(float[a] x, int64 n) => (float[b] y) <bool yes = {1}>",
            """
        y = Loop ("", yes, x) <
            body = step (int64 i, bool c, float[p] s) => (bool go, float[q] u) {
                three = Constant <value_float = 3.0> ()
                negative = Neg (s)
                both = Concat <axis = 0> (s, negative)
                is_small = Less (both, three)
                u = Compress <axis = 0> (both, is_small)
                size = Size (u)
                go = Less (size, n)
            }
        >
        """,
        ),
    }
)
BODIES["parts by a counter"] = (
    """(float[5, 3] x, int64 n) => (float[1, 3] y, float[m, 1, 3] z)
    <float[1, 3] zero = {0, 0, 0}, bool yes = {1}, int64 k = {0}>""",
    """
    last, y, z = Loop ("", yes, k, zero) <
        body = step (int64 i, bool c, int64 place, float[1, 3] before)
        => (bool go, int64 next, float[1, 3] after, float[1, 3] row) {
            axis = Constant <value_ints = [0]> ()
            one = Constant <value_int = 1> ()
            next = Add (place, one)
            start = Unsqueeze (place, axis)
            end = Unsqueeze (next, axis)
            row = Slice (x, start, end, axis)
            after = Add (before, row)
            go = Less (next, n)
        }
    >
    """,
)
"""As recurrences in JAX read their rows."""
BODIES["endless in words"] = (
    BODIES["a while collects"][0].replace("<bool", "<int64 most = {9223372036854775807}, bool"),
    BODIES["a while collects"][1].replace('Loop ("",', "Loop (most,"),
)
"""As PyTorch's exporter writes a while."""


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def cached(trips: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(trips)
    keys, values = (rng.integers(-3, 4, (1, 2, 4)).astype(np.float32) for _ in range(2))
    return {"keys": keys, "values": values, "x": np.ones((1, 1, 4), np.float32), "n": np.array(trips)}


WHILES = [{"x": np.array(0, np.float32), "last": np.array(last, np.float32)} for last in (3, -1, 70, 300)]
COUNTED = [{"x": numbers(3, 1, 0), "d": numbers(*d)} for d in ((0, 1, 1), (0, 0, 0), (1, 1, 1))]
CALLS: dict[str, list[dict[str, Any]]] = {
    "doubles as often as data says": COUNTED,
    "five of what there is join": COUNTED,
    "ids grow": [{"x": np.array([[1, 2, 3]]), "n": np.array(n)} for n in (4, 0, 700)],
    "ids grow up to one that ends": [
        {"x": np.array([[1, 2, 3]]), "n": np.array(n), "last": np.array(last)} for n, last in ((9, 9), (9, 5), (0, 3))
    ],
    "keys and values grow": [cached(3), cached(12)],
    "a while collects": WHILES,
    "endless in words": WHILES,
    "a while grows": [{"x": numbers(0, 0), "last": np.array(last, np.float32)} for last in (3, -1, 70)],
    "a list shrinks": [{"x": numbers(3, 1, 2, 1, 5), "n": np.array(n)} for n in (1, 3, 0)],
    "a list loses its first": [{"x": numbers(*x)} for x in ((3, 1, 2, 1, 5), (2, 1), (1,))],
    "doubles": [{"x": numbers(3, 1), "n": np.array(n)} for n in (1, 50, 1000)],
    "as often as data says": COUNTED,
    "a mask grows along two axes": [{"x": np.ones((2, 2), np.float32), "n": np.array(n)} for n in (1, 3, 50, 0)],
    "two lists grow by different steps": [
        {"x": numbers(1, 2), "z": numbers(3, 4), "last": np.array(last, np.float32)} for last in (5, 30, 900)
    ],
    "a condition of the call": [
        {"x": numbers(1, 2), "first": np.array(first), "last": np.array(last, np.float32)}
        for first, last in ((True, 5), (False, 30), (True, 1), (True, 200))
    ],
    "a while that grows in a while": [{"x": numbers(1, 2), "last": np.array(last, np.float32)} for last in (5, 40, 2)],
    "what is negative and small joins": [{"x": numbers(1, 2, 5), "n": np.array(n)} for n in (1, 20, 100)],
    "parts by a counter": [{"x": np.arange(15, dtype=np.float32).reshape(5, 3), "n": np.array(n)} for n in (5, 1, 3)],
    "a while in a while": [{"x": np.array(0, np.float32), "last": np.array(last, np.float32)} for last in (3, 80)],
}


@pytest.mark.parametrize("case", share(list(BODIES), "sized loops"))
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_state_and_rows_are_as_large_as_trips_make_them(case: str, backend: str) -> None:
    check(model(*BODIES[case]), *CALLS[case], backend=backend)


@pytest.mark.parametrize("kept", ["y", "z"])
def test_results_that_nobody_asks_for_take_no_room_from_others(kept: str) -> None:
    """A loop runs to its end, also where only the state is an output, or only the rows are."""
    source = model(*BODIES["a while collects"])
    for output in [output for output in source.graph.output if output.name != kept]:
        source.graph.output.remove(output)
    check(source, *WHILES)


def test_users_say_for_how_many_trips_there_is_room() -> None:
    source = model(*BODIES["a while collects"])
    session = InferenceSession(source, cache=False, dimensions={"y.trips": 10})
    assert session.run(None, WHILES[0])[1].shape == (4,)
    with pytest.raises(ExecutionError, match="'y': a loop takes more trips"):
        session.run(None, WHILES[2])
    with pytest.raises(OptionError, match=r"invalid trip capacity 0 of 'y\.trips'"):
        InferenceSession(source, cache=False, dimensions={"y.trips": 0})


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_room_takes_no_more_memory_than_there_may_be(backend: str) -> None:
    limits = SpecializationLimits(memory=3000)
    session = InferenceSession(model(*BODIES["a while collects"]), cache=False, limits=limits, backend=backend)
    with pytest.raises(
        ExecutionError,
        match=r"'y': a loop takes more trips than the capacity of 'y\.trips': 256 trips; memory for more",
    ):
        session.run(None, {"x": np.array(0, np.float32), "last": np.array(1e9, np.float32)})
    with pytest.raises(ExecutionError, match=r"takes \d+ bytes, more than 3000 \(hint: it may never end; dimensions="):
        session.run(None, WHILES[3])
    assert session.run(None, WHILES[2])[1].shape == (71,)


def test_a_loop_that_runs_long_takes_no_memory_for_others() -> None:
    """Its capacity grows alone: memory for as many trips of the loop beside it would exceed the limit."""
    source = model(
        "(float x, float last, float[1000] w) => (float y, float[n] z, float v, float[m, 1000] u) <bool yes = {1}>",
        BODIES["a while collects"][1]
        + """
        v, u = Loop ("", yes, x) <
            body = wide (int64 k, bool d, float old) => (bool on, float new, float[1000] line) {
                half = Constant <value_float = 100.0> ()
                new = Add (old, half)
                on = Less (old, last)
                line = Add (w, new)
            }
        >
        """,
    )
    w = np.ones(1000, np.float32)
    session = InferenceSession(source, cache=False, limits=SpecializationLimits(memory=300_000))
    given = {"x": np.array(0, np.float32), "last": np.array(900, np.float32), "w": w}
    y, z, _, u = session.run(None, given)
    assert (y, z.shape, u.shape) == (901, (901,), (10, 1000))
    assert session.specializations[-1].sizes == {"y.trips": (1, 1024), "v.trips": (1, 64)}
    with pytest.raises(ExecutionError, match=r"'v': a loop takes more trips than the capacity of 'v\.trips': 64 trips"):
        session.run(None, {**given, "last": np.array(7000, np.float32)})
    assert session.run(None, given)[0] == 901


def test_a_long_loop_takes_nothing_from_calls_with_other_sizes() -> None:
    """Code for its capacity would take too much memory for larger rows, which then begin with the first capacity."""
    source = model(
        "(float x, float last, float[N] w) => (float y, float[n, N] z) <bool yes = {1}>",
        """
        y, z = Loop ("", yes, x) <
            body = wide (int64 i, bool c, float before) => (bool go, float after, float[N] row) {
                one = Constant <value_float = 1.0> ()
                after = Add (before, one)
                go = Less (before, last)
                row = Add (w, before)
            }
        >
        """,
    )
    session = InferenceSession(source, cache=False, limits=SpecializationLimits(memory=300_000))

    def rows(width: int, last: float) -> int:
        given = {"x": np.array(0, np.float32), "last": np.array(last, np.float32), "w": np.ones(width, np.float32)}
        return len(session.run(None, given)[1])

    for width, last, capacity in [(1, 9000, 16384), (1000, 5, 64), (1, 9000, 16384)]:
        assert rows(width, last) == last + 1
        assert session.specializations[-1].sizes["y.trips"] == (1, capacity)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="memory for more takes"):
            rows(1000, 5000)
        assert rows(1000, 5) == 6


def test_room_is_kept_between_calls() -> None:
    session = InferenceSession(model(*BODIES["a while collects"]), cache=False)
    for _ in range(2):
        for given in WHILES:
            session.run(None, given)
    (only,) = session.specializations
    assert only.sizes == {"y.trips": (1, 1024)}


def test_threads_make_room_together() -> None:
    """Each has its own number of trips, and all of them begin when there is no room yet."""
    session = InferenceSession(model(*BODIES["a while collects"]), cache=False)

    def rows(last: int) -> list[int]:
        given = {"x": np.array(0, np.float32), "last": np.array(last, np.float32)}
        return [len(session.run(None, given)[1]) for _ in range(3)]

    lasts = [3, 70, 300, 1000]
    with ThreadPoolExecutor(len(lasts)) as pool:
        assert list(pool.map(rows, lasts)) == [[last + 1] * 3 for last in lasts]


def test_bound_outputs_are_as_large_as_trips_make_them() -> None:
    session = InferenceSession(model(*BODIES["a while collects"]), cache=False)
    binding = session.io_binding()
    for name, value in WHILES[3].items():
        binding.bind_cpu_input(name, value)
    for name in "yz":
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    assert [output.shape for output in binding.copy_outputs_to_cpu()] == [(), (301,)]


def test_a_loop_that_never_ends_is_an_error() -> None:
    source = model(
        "(float x) => (float y, float[n] z) <bool yes = {1}>",
        """
        y, z = Loop ("", yes, x) <
            body = step (int64 i, bool c, float before) => (bool go, float after, float row) {
                after = Neg (before)
                row = Identity (after)
                go = Equal (row, after)
            }
        >
        """,
    )
    with pytest.raises(ExecutionError, match=r"'y': a loop takes more trips than the capacity of 'y\.trips'"):
        InferenceSession(source, cache=False, dimensions={"y.trips": 1000}).run(None, {"x": np.array(1, np.float32)})
