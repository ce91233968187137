"""The engines of a sweep as calls on kept bindings: glow_mlir, onnxruntime, and PyTorch where it has an equivalent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import onnx

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.api.onnxruntime.session_options import SessionOptions
from sweep.points import Point

Call = Callable[[], object]


class OnnxRuntimeError(Exception):
    """onnxruntime refuses a model, or fails to run it."""


class Engine:
    """A session on one model: its results, and the call that is timed."""

    def __init__(self, session: Any, feeds: Mapping[str, np.ndarray]) -> None:
        self._session = session
        self._feeds = dict(feeds)
        self.results: list[Any] = session.run(None, self._feeds)
        self._kept: list[Any] = []

    def is_bound(self) -> bool:
        """Whether inputs and outputs can be bound: outputs of fixed shapes, and no strings."""
        arrays: list[Any] = [*self._feeds.values(), *self.results]
        outputs: list[Any] = self._session.get_outputs()
        sizes: list[Any] = list(chain.from_iterable(item.shape or () for item in outputs))
        are_numbers = all(getattr(array, "dtype", np.dtype(object)) != np.dtype(object) for array in arrays)
        return are_numbers and all(isinstance(size, int) for size in sizes)

    def call(self, bound: bool) -> Call:
        """The call: on what is bound, whose memory lives as long, or plain."""
        session, feeds = self._session, self._feeds
        if not bound:
            return lambda: session.run(None, feeds)
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        places = [np.array(array) for array in self.results]
        for item, place in zip(session.get_outputs(), places, strict=True):
            binding.bind_output(item.name, "cpu", 0, place.dtype.type, list(place.shape), place.ctypes.data)
        self._kept += [binding, *places]
        return lambda: session.run_with_iobinding(binding)


def onnxruntime_engine(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], threads: int = 1) -> Engine:
    """onnxruntime's; raises `OnnxRuntimeError`."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if threads == 1 else "1")
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return Engine(session, feeds)
    except Exception as error:  # Its errors have no common class.
        raise OnnxRuntimeError(str(error)) from error


def reference(point: Point) -> list[np.ndarray]:
    """onnxruntime's results; raises `OnnxRuntimeError`."""
    return onnxruntime_engine(point.model(), point.feeds()).results


def our_engine(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], threads: int = 1) -> Engine:
    """glow_mlir's; raises `GlowError`."""
    options = SessionOptions()
    options.intra_op_num_threads = threads
    return Engine(InferenceSession(model.SerializeToString(), options, cache=False), feeds)


RELATIVE: Mapping[str, float] = {"float16": 4e-3, "float32": 1e-4, "float64": 1e-6}
"""Element type → how far results may be off, by the largest of theirs."""

RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial")
"""Operators whose numbers are nobody's."""


def differences(point: Point, ours: Sequence[Any], theirs: Sequence[Any]) -> list[str]:
    """How our results differ from onnxruntime's, in words; codes may be off by one."""
    if point.operator in RANDOM:
        return []
    if point.operator == "TopK" and "sorted: int = 0" in point.graph:
        ours, theirs = ([np.sort(results[0], -1)] for results in (ours, theirs))  # Any order is right.
    return [
        f"result {index}: {word}"
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if (word := _difference(np.asarray(a), np.asarray(b)))
    ]


def _difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)}, onnxruntime {theirs.dtype}{list(theirs.shape)}"
    if ours.dtype.kind == "f":
        a, b = (np.asarray(array, np.float64) for array in (ours, theirs))
        finite = np.isfinite(b)
        if not np.array_equal(np.where(finite, 0, a), np.where(finite, 0, b), equal_nan=True):
            return "other places of infinities or NaN"
        gap = float(np.max(np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)), initial=0))
        scale = float(np.max(np.abs(b[finite]), initial=0)) or 1.0
        return "" if gap <= RELATIVE[ours.dtype.name] * scale else f"off by {gap / scale:.1e} of the largest"
    unequal = ours != theirs
    if ours.dtype.name in ("int8", "uint8") and unequal.any():
        unequal = np.abs(ours.astype(int) - theirs.astype(int)) > 1
    count = int(np.count_nonzero(unequal))
    return f"{count} of {ours.size} elements" if count else ""
