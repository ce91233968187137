"""Branches and loops of TensorFlow Lite, whose parts are graphs of the file."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_files import GraphCase, OperatorCase, SignatureCase, TensorCase, tflite_file
from tflite_reference import reference

from glow_mlir import GlowError, InferenceSession
from glow_mlir.errors import ModelError
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite

VECTOR, TRUTH, ONE = TensorCase((3,)), TensorCase((), "bool"), TensorCase((), "int32")
NUMBER = TensorCase((), "int32", np.array(1, np.int32))
PAIR = [VECTOR, VECTOR]


def graph(kind: str, tensors: list[TensorCase], options: dict[int, tuple[str, int]] | None = None) -> GraphCase:
    """The graph of one operator, whose result is the last tensor."""
    numbers = range(len(tensors))
    given = [number for number in numbers[:-1] if tensors[number].values is None]
    return GraphCase(tensors, [OperatorCase(kind, numbers[:-1], numbers[-1:], options)], given, numbers[-1:])


BRANCH = tflite_file(
    [
        graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 1), 1: ("i", 2)}),
        graph("EXP", PAIR),
        graph("NEG", PAIR),
    ]
)
"""e^x or -x."""


def loop(limit: int) -> bytes:
    """Doubles a vector as long as a counter, which is incremented, is below a limit."""
    known = TensorCase((), "int32", np.array(limit, np.int32))
    tensors = [ONE, VECTOR, ONE, VECTOR]
    step = GraphCase(
        [ONE, VECTOR, NUMBER, ONE, VECTOR],
        [OperatorCase("ADD", (0, 2), (3,), {0: ("b", 0)}), OperatorCase("ADD", (1, 1), (4,), {0: ("b", 0)})],
        (0, 1),
        (3, 4),
    )
    condition = GraphCase([ONE, VECTOR, known, TRUTH], [OperatorCase("LESS", (0, 2), (3,))], (0, 1), (3,))
    entry = OperatorCase("WHILE", (0, 1), (2, 3), {0: ("i", 1), 1: ("i", 2)})
    return tflite_file([GraphCase(tensors, [entry], (0, 1), (2, 3)), condition, step])


def session(data: bytes) -> InferenceSession:
    return InferenceSession(import_tflite(TfliteFile.of(memoryview(data))), threads=1)


@pytest.mark.parametrize("truth", [False, True])
def test_branches(truth: bool) -> None:
    x = np.array([-1, 0, 2], np.float32)
    (found,) = session(BRANCH).run(None, {"t0": np.array(truth), "t1": x})
    np.testing.assert_allclose(found, np.exp(x) if truth else -x, rtol=1e-6)


@pytest.mark.parametrize("first", [0, 3, 9])
def test_loops(first: int) -> None:
    x = np.array([1, 2, 3], np.float32)
    count, found = session(loop(5)).run(None, {"t0": np.array(first, np.int32), "t1": x})
    trips = max(0, 5 - first)
    assert count == first + trips
    np.testing.assert_array_equal(found, x * 2**trips)


@pytest.mark.extra
@pytest.mark.parametrize("data", [BRANCH, loop(7)])
def test_they_equal_the_reference(data: bytes) -> None:
    ours, theirs = session(data), reference(data)
    for first in (0, 1):
        arrays = [
            np.array(first, item["dtype"]) + np.zeros(item["shape"], item["dtype"])
            for item in theirs.get_input_details()
        ]
        for detail, array in zip(theirs.get_input_details(), arrays, strict=True):
            theirs.set_tensor(detail["index"], array)
        theirs.invoke()
        found = ours.run(None, dict(zip((item.name for item in ours.get_inputs()), arrays, strict=True)))
        for detail, result in zip(theirs.get_output_details(), found, strict=True):
            np.testing.assert_allclose(result, theirs.get_tensor(detail["index"]), rtol=1e-6)


def test_graphs_that_are_wrong_are_refused() -> None:
    with pytest.raises(ModelError, match="calls graph 7 of 1"):
        session(tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 7), 1: ("i", 7)})]))
    with pytest.raises(ModelError, match="calls itself"):
        session(tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 0), 1: ("i", 0)})]))
    other = graph("EXP", [TensorCase((2,)), TensorCase((2,))])
    with pytest.raises(ModelError, match="takes the shapes"):
        session(tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 1), 1: ("i", 1)}), other]))
    with pytest.raises(GlowError, match="HASHTABLE is not supported"):
        session(
            tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 1), 1: ("i", 1)}), graph("HASHTABLE", PAIR)])
        )


def test_loops_and_branches_take_a_free_batch() -> None:
    row = TensorCase((1, 3), free=(0,))
    step = GraphCase([row, NUMBER, row], [OperatorCase("EXP", (0,), (2,))], (0,), (2,))
    branch = GraphCase([row, row], [OperatorCase("NEG", (0,), (1,))], (0,), (1,))
    operator = OperatorCase("IF", (0, 1), (2,), {0: ("i", 1), 1: ("i", 2)})
    data = tflite_file([GraphCase([TRUTH, row, row], [operator], (0, 1), (2,)), step, branch])
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = InferenceSession(data, threads=1).run(None, {"t0": np.array(False), "t1": x})
    np.testing.assert_array_equal(found, -x)


def test_a_graph_that_is_called_has_the_types_of_its_operands() -> None:
    data = tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 1), 1: ("i", 1)}), graph("NEG", [ONE, ONE])])
    with pytest.raises(ModelError, match=r"IF: graph 1 takes the shapes \[\(\)\], not \[\(3,\)\]"):
        session(data)
    whole = TensorCase((3,), "int32")
    data = tflite_file([graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 1), 1: ("i", 1)}), graph("NEG", [whole, whole])])
    with pytest.raises(ModelError, match="IF: 't0' is of int32, not of f32"):
        session(data)


def test_an_entry_calls_the_first_graph() -> None:
    operator = graph("IF", [TRUTH, VECTOR, VECTOR], {0: ("i", 0), 1: ("i", 0)})
    data = tflite_file([graph("NEG", PAIR), operator], [SignatureCase("choose", 1, {0: "truth", 1: "x"}, {2: "y"})])
    x = np.array([1, 2, 3], np.float32)
    (found,) = InferenceSession(data, entry="choose", threads=1).run(None, {"truth": np.array(True), "x": x})
    np.testing.assert_array_equal(found, -x)
