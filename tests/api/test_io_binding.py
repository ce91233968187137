"""Bindings: what machine code reads and writes in place, what goes through a copy, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from breadth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from small_models import adding, counter, two_inputs

from glow_mlir import InferenceSession, InvalidArgument, IOBinding, OrtValue, SpecializationLimits
from glow_mlir.errors import OptionError

BACKENDS = pytest.mark.parametrize("backend", ["cpu", "interpreter"])


def bind(session: InferenceSession, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> Any:
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    return binding


@BACKENDS
def test_each_call_reads_and_writes_the_same_memory(backend: str) -> None:
    session = InferenceSession(adding(), backend=backend)
    x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
    binding = bind(session, {"x": x}, {"y": y})
    for number in (1, 5):
        x[...] = number
        session.run_with_iobinding(binding)
        assert (y == 2 * number).all()
    (value,) = binding.get_outputs()
    assert value.data_ptr() == y.ctypes.data
    (copy,) = binding.copy_outputs_to_cpu()
    assert not np.shares_memory(copy, y)
    assert repr(binding) == "<IOBinding of main: x -> y>"


@pytest.mark.parametrize(
    ("sizes", "dimensions"), [((2, 3), None), (("N", 3), {"N": (1, 8)}), (("N", 3), {"N": (1, None)}), (("N", 3), None)]
)
def test_machine_code_writes_to_bound_memory_itself(
    monkeypatch: pytest.MonkeyPatch, sizes: Any, dimensions: Any
) -> None:
    """No array is made for the output, and none is copied."""
    session = InferenceSession(adding(sizes), dimensions=dimensions, warm="specialised")
    x, y = np.ones((2, 3), np.float32), np.empty((2, 3), np.float32)
    binding = bind(session, {"x": x}, {"y": y})

    def never(*arguments: object) -> None:
        raise AssertionError("an output is made")

    monkeypatch.setattr("glow_mlir.runtime.machine_code.made", never)
    monkeypatch.setattr("glow_mlir.runtime.layouts.made", never)
    for number in (1, 5, 6):
        x[...] = number
        session.run_with_iobinding(binding)
        assert (y == 2 * number).all()


def test_calls_on_bound_memory_follow_evictions() -> None:
    limits = SpecializationLimits(number=1)
    session = InferenceSession(adding(("N", 3)), cache=False, warm="specialised", limits=limits)
    arrays = [(np.ones((rows, 3), np.float32), np.empty((rows, 3), np.float32)) for rows in (1, 2)]
    bindings = [bind(session, {"x": x}, {"y": y}) for x, y in arrays]
    for number in range(2, 5):
        for (x, y), binding in zip(arrays, bindings, strict=True):
            for factor in (1, 10, 100):
                x[...] = factor * number
                session.run_with_iobinding(binding)
                assert (y == 2 * factor * number).all()
            (kept,) = session.specializations
            assert (set(kept.sizes.values()), kept.calls) == ({len(x)}, 3)


@BACKENDS
def test_inputs_that_code_cannot_read_in_place_are_read_anew_by_each_call(backend: str) -> None:
    session = InferenceSession(adding(), backend=backend)
    whole = np.ones((3, 2), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", whole.T)
    binding.bind_output("y")
    for number in (1, 3):
        whole[...] = number
        session.run_with_iobinding(binding)
        assert (binding.get_outputs()[0].numpy() == 2 * number).all()


def test_outputs_without_memory_are_new_for_each_call() -> None:
    session = InferenceSession(adding())
    x = np.ones((2, 3), np.float32)
    binding = bind(session, {"x": x}, {})
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    first = binding.get_outputs()[0].numpy()
    x += 1
    session.run_with_iobinding(binding)
    assert (first == 2).all()
    assert (binding.get_outputs()[0].numpy() == 4).all()


@BACKENDS
@settings(max_examples=examples(30), deadline=None)
@given(places=st.lists(st.integers(0, 24), min_size=4, max_size=4))
def test_memory_that_overlaps_gives_what_separate_memory_gives(backend: str, places: list[int]) -> None:
    """Inputs are read before outputs are written; of two outputs in one place, the last that is bound stays whole."""
    session = SESSIONS.setdefault(backend, InferenceSession(two_inputs(), backend=backend, cache=False))
    memory = np.arange(28, dtype=np.float32) ** 2
    a, b, total, difference = (memory[place : place + 4] for place in places)
    expected = {"sum": a + b, "difference": a - b}
    binding = bind(session, {"a": a, "b": b}, {"sum": total, "difference": difference})
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(difference, expected["difference"])
    if not np.may_share_memory(total, difference):
        np.testing.assert_array_equal(total, expected["sum"])


SESSIONS: dict[str, InferenceSession] = {}


@BACKENDS
@pytest.mark.parametrize("dimensions", [None, {"N": (1, 8)}])
def test_outputs_of_sizes_known_at_run_time(backend: str, dimensions: Any) -> None:
    session = InferenceSession(adding(("N", 3)), backend=backend, dimensions=dimensions)
    for rows in (2, 5):
        x, y = np.full((rows, 3), rows, np.float32), np.empty((rows, 3), np.float32)
        session.run_with_iobinding(bind(session, {"x": x}, {"y": y}))
        assert (y == 2 * rows).all()
    x, y = np.ones((2, 3), np.float32), np.empty((5, 3), np.float32)
    with pytest.raises(InvalidArgument, match="output 'y' "):
        session.run_with_iobinding(bind(session, {"x": x}, {"y": y}))


def test_misaligned_memory_is_written() -> None:
    session = InferenceSession(adding())
    raw = np.zeros(25, np.uint8)
    binding = bind(session, {"x": np.ones((2, 3), np.float32)}, {})
    binding.bind_output("y", "cpu", 0, np.float32, [2, 3], raw.ctypes.data + 1)
    session.run_with_iobinding(binding)
    assert (np.frombuffer(raw[1:].tobytes(), np.float32) == 2).all()


def test_calls_with_state_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "counter.mlir"
    path.write_text(counter())
    session = InferenceSession(path)
    y = np.empty(4, np.float32)
    binding = bind(session, {"x": np.ones(4, np.float32)}, {"y": y})
    for count in (1, 2, 3):
        session.run_with_iobinding(binding)
        assert (y == count).all()


def test_bound_calls_follow_a_state_to_other_memory(tmp_path: Path) -> None:
    path = tmp_path / "counter.mlir"
    path.write_text(counter())
    session = InferenceSession(path)
    y = np.empty(4, np.float32)
    binding = bind(session, {"x": np.ones(4, np.float32)}, {"y": y})
    session.run_with_iobinding(binding)
    (name,) = session.get_state()
    session.set_state({name: np.full(4, 7, np.float32)})
    session.run_with_iobinding(binding)
    assert (y == 8).all()
    moved = np.zeros(4, np.float32)
    session.machine_code.state.attach({name: moved})
    session.run_with_iobinding(binding)
    assert (y == 9).all()
    assert (moved == 9).all()


def test_threads_write_to_bound_memory() -> None:
    session = InferenceSession(adding((1000, 300)), threads=2)
    x, y = np.ones((1000, 300), np.float32), np.empty((1000, 300), np.float32)
    session.run_with_iobinding(bind(session, {"x": x}, {"y": y}))
    assert (y == 2).all()


@BACKENDS
def test_an_output_may_be_in_the_place_of_an_input(backend: str) -> None:
    """The one array is both: a transposition in place would read what it has written."""
    node = helper.make_node("Transpose", ["x"], ["y"])
    arguments = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in ("x", "y")]
    graph = helper.make_graph([node], "transposing", arguments[:1], arguments[1:])
    session = InferenceSession(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), backend=backend)
    value = OrtValue(np.arange(64 * 64, dtype=np.float32).reshape(64, 64))
    expected = value.numpy().T.copy()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    assert (value.numpy() == expected).all()


class Lent:
    """The tensor of another library, which gives its memory as an array."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array


@BACKENDS
def test_calls_follow_the_memory_of_other_libraries(backend: str) -> None:
    """Also where the call needs a copy, of another layout."""
    session = InferenceSession(adding(), backend=backend)
    memory, y = np.ones((3, 2), np.float32), np.empty((2, 3), np.float32)
    binding = bind(session, {"x": cast("Any", Lent(memory.T))}, {"y": y})
    for number in (1, 5):
        memory[...] = number
        session.run_with_iobinding(binding)
        assert (y == 2 * number).all()


def test_lists_are_bound_as_numbers_of_the_input() -> None:
    session = InferenceSession(adding())
    y = np.empty((2, 3), np.float32)
    session.run_with_iobinding(bind(session, {"x": cast("Any", [[1, 2, 3], [4, 5, 6]])}, {"y": y}))
    assert y.tolist() == [[2, 4, 6], [8, 10, 12]]


def refusals() -> dict[str, tuple[type[Exception], str, Callable[[IOBinding], object]]]:
    """What is wrong, and what a binding is asked."""
    x, read_only = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    read_only.flags.writeable = False
    return {
        "unknown input": (InvalidArgument, "there is no input 'z'", lambda b: b.bind_cpu_input("z", x)),
        "unknown output": (InvalidArgument, "there is no output 'z'", lambda b: b.bind_output("z")),
        "type": (InvalidArgument, "must be float32", lambda b: b.bind_cpu_input("x", x.astype(np.float64))),
        "shape": (InvalidArgument, "must be float32", lambda b: b.bind_cpu_input("x", x[:1])),
        "no array": (InvalidArgument, "input 'x' must be", lambda b: b.bind_cpu_input("x", "text")),
        "device": (OptionError, "no device 'dml'", lambda b: b.bind_output("y", "dml")),
        "number": (OptionError, "number 1", lambda b: b.bind_output("y", "cpu", 1)),
        "address": (InvalidArgument, "no address", lambda b: b.bind_output("y", "cpu", 0, np.float32, [2, 3], 0)),
        "negative": (InvalidArgument, "no shape", lambda b: b.bind_output("y", "cpu", 0, np.float32, [-1], 64)),
        "untyped": (InvalidArgument, "needs a type and a shape", lambda b: b.bind_output("y", buffer_ptr=64)),
        "other size": (InvalidArgument, "is for", lambda b: b.bind_output("y", "cpu", 0, np.float32, [2], 64)),
        "other type": (InvalidArgument, "is for", lambda b: b.bind_output("y", "cpu", 0, np.int8, [2, 3], 64)),
        "read only": (
            InvalidArgument,
            "only be read",
            lambda b: b.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(read_only)),
        ),
        "no value": (InvalidArgument, "is no OrtValue", lambda b: b.bind_ortvalue_input("x", cast("Any", x))),
        "endless": (InvalidArgument, "no address", lambda b: b.bind_output("y", "cpu", 0, "f4", [2**40, 2**40], 64)),
        "far": (InvalidArgument, "no address", lambda b: b.bind_output("y", "cpu", 0, "f4", [2, 3], 2**70)),
        "objects": (
            InvalidArgument,
            "no tensors of object",
            lambda b: b.bind_output("y", "cpu", 0, object, [2, 3], 64),
        ),
        "no shape": (
            InvalidArgument,
            "None is no shape",
            lambda b: b.bind_input("x", "cpu", 0, np.float32, cast("Any", None), 64),
        ),
        "no binding": (InvalidArgument, "is no binding", lambda b: b.session.run_with_iobinding(cast("Any", None))),
        "no output": (InvalidArgument, "no output is bound", lambda b: b.call()),
    }


@pytest.mark.parametrize("case", refusals())
def test_what_does_not_fit_is_refused_in_one_line(case: str) -> None:
    kind, expected, ask = refusals()[case]
    with pytest.raises(kind, match=expected) as caught:
        ask(InferenceSession(adding()).io_binding())
    assert "\n" not in str(caught.value)


def test_missing_inputs_and_bindings_of_others_are_refused() -> None:
    session, other = InferenceSession(adding()), InferenceSession(adding())
    binding = session.io_binding()
    binding.bind_output("y")
    with pytest.raises(InvalidArgument, match="input 'x' is missing"):
        session.run_with_iobinding(binding)
    with pytest.raises(InvalidArgument, match="another session"):
        other.run_with_iobinding(binding)
