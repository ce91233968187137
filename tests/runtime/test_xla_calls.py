"""The handler by which XLA calls entries, on frames as XLA makes them."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from glow_mlir import InferenceSession
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.xla_handler import MESSAGE, xla_handler
from glow_mlir.runtime import xla_call_layout as layout
from glow_mlir.runtime.loader import Library
from glow_mlir.runtime.machine_code import MachineEntry
from glow_mlir.runtime.xla_calls import CallRecord

Words = NDArray[np.int64]

FRAME_WORDS = 22
EXTENSION, API, ARGUMENTS, RESULTS, ATTRIBUTES = 1, 2, 9, 14, 20
BUFFER_WORDS, DATA = 6, 3


@pytest.fixture(scope="module")
def library() -> Library:
    """The machine code of the handler."""
    return Library(xla_handler(host_target()))


def answer(library: Library, frame: Words) -> int | None:
    """What the handler returns for a frame."""
    return library.function(layout.HANDLER, (ctypes.c_void_p,), ctypes.c_void_p)(frame.ctypes.data)


class Frame:
    """The frame of a call on arrays."""

    def __init__(self, record: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        self.words = np.zeros(FRAME_WORDS, np.int64)
        self._kept: list[Words] = []
        for field, arrays in ((ARGUMENTS, arguments), (RESULTS, results)):
            buffers = np.zeros((len(arrays), BUFFER_WORDS), np.int64)
            buffers[:, DATA] = [array.ctypes.data for array in arrays]
            self.words[field] = self._keep([buffer.ctypes.data for buffer in buffers])
            self._kept.append(buffers)
        scalar = self._keep([0, self._keep([record])])
        self.words[ATTRIBUTES] = self._keep([scalar])

    def _keep(self, words: Sequence[int]) -> int:
        self._kept.append(np.array(words, np.int64))
        return self._kept[-1].ctypes.data


def entry() -> MachineEntry:
    """An entry that gives the sum and the product of its inputs."""
    shape = [33]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["sum"]), helper.make_node("Mul", ["x", "y"], ["product"])],
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("sum", "product")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return InferenceSession(model.SerializeToString(), threads=1).machine_entry


def test_a_call_computes_on_the_buffers_of_its_frame(library: Library) -> None:
    point = entry()
    assert point.takes_pointers
    record = CallRecord(point)
    x, y = (np.random.default_rng(seed).standard_normal(33, np.float32) for seed in range(2))
    total, product = np.empty_like(x), np.empty_like(x)
    frame = Frame(record.address, [x, y], [total, product])
    record.begin()
    assert not record.is_idle
    assert answer(library, frame.words) is None
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(product, x * y)
    assert record.is_idle


def test_calls_of_several_threads_wait_for_slots(library: Library) -> None:
    record, wrong = CallRecord(entry()), list[int]()

    def calls(number: int) -> None:
        x, y = np.full(33, number, np.float32), np.arange(33, dtype=np.float32)
        total, product = np.empty_like(x), np.empty_like(x)
        frame = Frame(record.address, [x, y], [total, product])
        for _ in range(200):
            total[:] = product[:] = -1
            answer(library, frame.words)
            if not (np.array_equal(total, x + y) and np.array_equal(product, x * y)):
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failed_call_returns_an_error_of_xla(library: Library) -> None:
    said: list[tuple[bytes, int]] = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    def failing(*_: int) -> int:
        return 7

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def create(arguments: int) -> int:
        words = (ctypes.c_int64 * 4).from_address(arguments)
        said.append((ctypes.string_at(words[2]), words[3]))
        return 99

    pointers = np.zeros(1, np.int64)
    record = np.zeros(layout.words(1), np.int64)
    record[layout.FUNCTION] = ctypes.cast(failing, ctypes.c_void_p).value
    record[layout.SLOTS] = 1
    record[layout.FIRST_SLOT + layout.POINTERS] = pointers.ctypes.data
    frame = Frame(record.ctypes.data, [], [])
    api = np.zeros(7, np.int64)
    api[6] = ctypes.cast(create, ctypes.c_void_p).value
    frame.words[API] = api.ctypes.data
    assert answer(library, frame.words) == 99
    assert said == [(MESSAGE, 13)]
    assert record[layout.ENDED] == 1
    assert record[layout.FIRST_SLOT + layout.BUSY] == 0


def test_the_handler_has_the_version_that_xla_has(library: Library) -> None:
    answered, extension, api = np.full(8, -1, np.int32), np.zeros(4, np.int64), np.zeros(10, np.int32)
    api[9] = 5
    extension[3] = answered.ctypes.data
    frame = np.zeros(FRAME_WORDS, np.int64)
    frame[EXTENSION], frame[API] = extension.ctypes.data, api.ctypes.data
    assert answer(library, frame) is None
    assert answered[6:8].tolist() == [0, 5]


def test_calls_that_threads_begin_at_once_are_all_counted() -> None:
    record = CallRecord(entry())
    threads = [threading.Thread(target=lambda: [record.begin() for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = (ctypes.c_int64 * (layout.ENDED + 1)).from_address(record.address)
    words[layout.ENDED] = 3999
    assert not record.is_idle
    words[layout.ENDED] = 4000
    assert record.is_idle
