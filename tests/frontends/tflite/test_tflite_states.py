"""States of TensorFlow Lite models: which tensors and handles are one variable, and the batch that states fix."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tflite_files import GraphCase, OperatorCase, SignatureCase, TensorCase, tflite_file, tflite_model
from tflite_reference import reference

from glow_mlir import GlowError, InferenceSession

RANDOM = np.random.default_rng(5)
HANDLE, PAIR = TensorCase((), "resource"), TensorCase((2,))


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def constant(*shape: int) -> TensorCase:
    return TensorCase(shape, values=numbers(*shape))


def svdf(width: int, *, free: tuple[int, ...] = ()) -> list[TensorCase]:
    """Weights of 2 filters for rows of a width, their state over 3 steps, and the result."""
    return [
        constant(2, width),
        constant(2, 3),
        constant(2),
        TensorCase((1, 6), is_variable=True),
        TensorCase((1, 2), free=free),
    ]


def two_svdfs() -> bytes:
    """A filter behind another one; their states are called t4 and t9."""
    options = {0: ("i", 1), 1: ("b", 0)}
    operators = [OperatorCase("SVDF", range(5), (5,), options), OperatorCase("SVDF", range(5, 10), (10,), options)]
    return tflite_model([TensorCase((1, 3)), *svdf(3), *svdf(2)], operators, (0,), (10,))


def renamed(data: bytes, name: bytes) -> bytes:
    """The file with both states of `two_svdfs` called `name`, which has at most two characters."""
    for own in (b"t4", b"t9"):
        data = data.replace(b"\2\0\0\0" + own + b"\0", bytes([len(name), 0, 0, 0]) + name.ljust(3, b"\0"))
    return data


@pytest.mark.parametrize("name", [b"s", b""])
def test_states_of_one_name_are_not_one_state(name: bytes) -> None:
    data = two_svdfs()
    sessions = [InferenceSession(item, threads=1) for item in (data, renamed(data, name))]
    for _ in range(3):
        x = numbers(1, 3)
        wanted, found = (session.run(None, {"t0": x})[0] for session in sessions)
        np.testing.assert_array_equal(found, wanted)
    assert len(sessions[1].get_state()) == 2


def test_a_state_has_the_batch_of_the_file() -> None:
    tensors = [TensorCase((1, 3), free=(0,)), *svdf(3, free=(0,))]
    data = tflite_model(tensors, [OperatorCase("SVDF", range(5), (5,), {0: ("i", 1), 1: ("b", 0)})], (0,), (5,))
    assert InferenceSession(data, threads=1).get_inputs()[0].shape == [1, 3]
    with pytest.raises(GlowError, match=r"do not fit the state \[1, 6\]"):
        InferenceSession(data, threads=1, dimensions={"t0.0": 2})


def test_states_of_an_lstm_have_the_batch_of_the_file() -> None:
    weights = [constant(4, 3) for _ in range(4)] + [constant(4, 4) for _ in range(4)] + [constant(4) for _ in range(4)]
    states = [TensorCase((1, 4), is_variable=True)] * 2
    tensors = [TensorCase((1, 2, 3), free=(0,)), *weights, *states, TensorCase((1, 2, 4), free=(0,))]
    operands = (*range(9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1)
    operator = OperatorCase("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, (15,), {0: ("b", 4)})
    data = tflite_model(tensors, [operator], (0,), (15,))
    assert InferenceSession(data, threads=1).get_inputs()[0].shape == [1, 2, 3]
    with pytest.raises(GlowError, match=r"state \[1, 4\] does not fit a batch of 3 and 4 units"):
        InferenceSession(data, threads=1, dimensions={"t0.0": 3})


def test_weights_of_an_lstm_fit_each_other() -> None:
    weights = [*[constant(4, 3)] * 3, constant(4, 2), *[constant(4, 4)] * 4, *[constant(4)] * 4]
    tensors = [TensorCase((1, 2, 3)), *weights, *[TensorCase((1, 4), is_variable=True)] * 2, TensorCase((1, 2, 4))]
    operands = (*range(9), -1, -1, -1, *range(9, 13), -1, -1, 13, 14, -1, -1, -1, -1)
    operator = OperatorCase("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, (15,), {0: ("b", 4)})
    with pytest.raises(GlowError, match="weights of gates from operand 1 on do not fit each other"):
        InferenceSession(tflite_model(tensors, [operator], (0,), (15,)), threads=1)


def counters(names: list[Mapping[int, str]]) -> bytes:
    """Handles with these options, whose variables begin with 0, 1, …; each call adds the input to the first one."""
    count = len(names)
    handles = [OperatorCase("VAR_HANDLE", (), (item,), name) for item, name in enumerate(names)]
    first = GraphCase(
        [*[HANDLE] * count, *[TensorCase((2,), values=np.full(2, item, np.float32)) for item in range(count)]],
        [*handles, *[OperatorCase("ASSIGN_VARIABLE", (item, count + item), ()) for item in range(count)]],
        (),
        (),
    )
    values = range(count + 2, 2 * count + 2)
    operators = [
        OperatorCase("CALL_ONCE", (), (), {0: ("i", 1)}),
        *handles,
        OperatorCase("READ_VARIABLE", (0,), (count,)),
        OperatorCase("ADD", (count, 2 * count + 2), (count + 1,), {0: ("b", 0)}),
        OperatorCase("ASSIGN_VARIABLE", (0, count + 1), ()),
        *[OperatorCase("READ_VARIABLE", (item,), (value,)) for item, value in enumerate(values)],
    ]
    tensors = [*[HANDLE] * count, *[PAIR] * (count + 3)]
    return tflite_file([GraphCase(tensors, operators, (2 * count + 2,), values), first])


@pytest.mark.extra
@pytest.mark.parametrize("names", [[{}, {}], [{1: "v"}, {0: "c", 1: "v"}], [{0: "c"}, {0: "d"}, {1: "w"}]])
def test_variables_are_those_of_litert(names: list[Mapping[int, str]]) -> None:
    data = counters(names)
    theirs, session = reference(data), InferenceSession(data, threads=1)
    for _ in range(2):
        x = numbers(2)
        theirs.set_tensor(theirs.get_input_details()[0]["index"], x)
        theirs.invoke()
        wanted = [theirs.get_tensor(item["index"]) for item in theirs.get_output_details()]
        for found, own in zip(session.run(None, {session.get_inputs()[0].name: x}), wanted, strict=True):
            np.testing.assert_array_equal(found, own)


def test_states_of_graphs_are_their_own() -> None:
    """Both signatures have a state of one name in a graph of their own."""
    graphs = [
        GraphCase(
            [TensorCase((1, width)), *svdf(width)],
            [OperatorCase("SVDF", range(5), (5,), {0: ("i", 1), 1: ("b", 0)})],
            (0,),
            (5,),
        )
        for width in (3, 4)
    ]
    signatures = [SignatureCase(name, item, {0: "x"}, {5: "y"}) for item, name in enumerate("ab")]
    session = InferenceSession(tflite_file(graphs, signatures), entry="b", threads=1)
    session.run(None, {"x": numbers(1, 4)})
    assert sorted(session.get_state()) == ["t4.0.4", "t4.1.4"]
