"""
What has to hold of a random model: the results of onnxruntime, optimized and not, in shapes, types and numbers.

A call that has no result in onnxruntime has to fail here as well, where the case says that there may be such calls.

Where floats are rounded to codes, a rounding error may become a step of a code. Such a difference counts as right only
where the float lies that close to the middle between two codes: the model is computed again with all floats a little
larger or smaller before they are rounded, and results have to lie between those.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
import onnx
import onnxruntime
from drawn_models import Arrays, Case
from onnx import helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import CompilerBugError, GlowError, GlowWarning

Result = TypeVar("Result")

RELATIVE = 1e-4
"""How far a result may be off, by the largest of its output, without codes."""

MIN_SCALE = 0.1
"""What the largest of an output is taken for where it is smaller: it may be a difference of numbers near one."""

NUDGE = 3e-6
"""How far floats are moved before they are rounded: by their size, and by one, of which they may be differences."""

NUDGED_MODELS = 6
"""How many models with moved floats are tried where results differ."""

ROUNDING = ("QuantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeMatMul")
"""Operators whose first operand is rounded to codes."""

RESULT_SCALES: Mapping[str, int] = {
    **{"QLinearConv": 6, "QLinearMatMul": 6, "QGemm": 7, "QLinearAdd": 6, "QLinearMul": 6, "QLinearConcat": 0},
    **dict.fromkeys(["QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool"], 3),
    **dict.fromkeys(["QLinearSoftmax", "QLinearReduceMean"], 3),
}
"""Operator whose result is rounded to codes → which operand is their scale."""


_ERRORS: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
FAILURES: tuple[type[Exception], ...] = (
    *(_ERRORS.Fail, _ERRORS.InvalidArgument, _ERRORS.InvalidGraph, _ERRORS.RuntimeException),
)
"""What onnxruntime raises where a model or its inputs contradict themselves."""


class WrongResultError(AssertionError):
    """Results that are not onnxruntime's."""


def onnxruntime_session(model: onnx.ModelProto, *, optimized: bool) -> onnxruntime.InferenceSession:
    """onnxruntime's session, with or without its optimizations."""
    options = cast("Any", onnxruntime.SessionOptions())
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def results_of(session: Any, inputs: Arrays) -> list[np.ndarray]:
    """The outputs of a session, ours or onnxruntime's."""
    return [np.asarray(array) for array in cast("list[Any]", session.run(None, dict(inputs)))]


def check_case(case: Case, **options: Any) -> int:
    """
    Compare each call of a model with onnxruntime.

    Returns how many calls gave results that only rounding errors before codes explain; raises `WrongResultError`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GlowWarning)
        kinds = (GlowError,) if case.may_fail else ()
        session = attempted(
            lambda: InferenceSession(case.model, cache=False, dimensions=dict(case.dimensions), **options), kinds
        )
        found = [
            session if isinstance(session, Exception) else attempted(lambda call=call: results_of(session, call), kinds)
            for call in case.calls
        ]
    return compare(case, found)


def attempted(make: Callable[[], Result], kinds: tuple[type[Exception], ...]) -> Result | Exception:
    """What a function returns, or what it raises of some kinds; a fault of the compiler's own is none of these."""
    try:
        return make()
    except CompilerBugError:
        raise
    except kinds as error:
        return error


def compare(case: Case, found: Sequence[Sequence[np.ndarray] | Exception]) -> int:
    """Compare the results of each call, or the exceptions, with onnxruntime's, as `check_case` does."""
    kinds = FAILURES if case.may_fail else ()
    plain = attempted(lambda: onnxruntime_session(case.model, optimized=False), kinds)
    names = [output.name for output in case.model.graph.output]
    explained = 0
    for call, results in zip(case.calls, found, strict=True):
        right = plain if isinstance(plain, Exception) else attempted(lambda call=call: results_of(plain, call), kinds)
        if isinstance(right, Exception):
            if not isinstance(results, Exception):
                raise WrongResultError(f"does not fail as in onnxruntime: {right}")
            continue
        if isinstance(results, Exception):
            raise results
        wanted = right
        if not (wrong := difference(names, results, [wanted], exact=True)):
            continue
        if not case.codes and not difference(names, results, [wanted], exact=False):
            continue
        # The first that agrees says that nothing is wrong, the cheapest first.
        others = [wanted, results_of(onnxruntime_session(case.model, optimized=True), call)]
        if difference(names, results, others, exact=False) and case.codes:
            for number in range(NUDGED_MODELS):
                others.append(results_of(onnxruntime_session(nudged(case.model, number), optimized=False), call))
        if difference(names, results, others, exact=False):
            raise WrongResultError(wrong)
        explained += int(case.codes)
    return explained


def difference(
    names: Sequence[str], found: Sequence[np.ndarray], wanted: Sequence[Sequence[np.ndarray]], *, exact: bool
) -> str:
    """Where results lie outside of those wanted, in a line; nothing where they do not. `exact`: within a few units."""
    for name, array, *several in zip(names, found, *wanted, strict=True):
        first = several[0]
        if array.shape != first.shape or array.dtype != first.dtype:
            return f"{name}: {array.dtype}{list(array.shape)}, not {first.dtype}{list(first.shape)}"
        low, high = np.minimum.reduce(several), np.maximum.reduce(several)
        if array.dtype.kind == "f":
            finite = np.where(np.isfinite(first), first, 0)
            margin = (1e-6 if exact else RELATIVE) * max(MIN_SCALE, float(np.abs(finite).max(initial=0)))
        else:
            margin = 0
        both_nan = np.isnan(first) & np.isnan(array) if array.dtype.kind == "f" else np.zeros(first.shape, bool)
        wide = np.int64 if array.dtype.kind in "iub" else np.float64
        inside = (array.astype(wide) >= low.astype(wide) - margin) & (array.astype(wide) <= high.astype(wide) + margin)
        if not np.all(inside | both_nan | (array == first)):
            place = np.unravel_index(int(np.argmin(inside | both_nan | (array == first))), array.shape)
            count = int((~(inside | both_nan)).sum())
            values = ", ".join(str(each[place]) for each in several)
            return f"{name}{[int(i) for i in place]} is {array[place]}, not {values} ({count} of {array.size} differ)"
    return ""


def nudged(model: onnx.ModelProto, number: int) -> onnx.ModelProto:
    """The model with all floats moved a little before they are rounded: up, down, or each in its own way."""
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    rng, weights = np.random.default_rng(number), copy.graph.initializer
    known = {weight.name: numpy_helper.to_array(weight) for weight in weights}
    nodes = list[onnx.NodeProto]()
    for position, node in enumerate(model.graph.node):
        moved = onnx.NodeProto.FromString(node.SerializeToString())
        less, more = (NUDGE * (1, -1)[number] if number < 2 else rng.choice([-NUDGE, NUDGE]) for _ in range(2))
        factor, name = np.float32(1 + less), f"nudge{position}"
        if node.op_type in ROUNDING:
            weights.append(numpy_helper.from_array(np.asarray(factor), name))
            weights.append(numpy_helper.from_array(np.asarray(np.float32(more)), f"{name}.more"))
            nodes.append(helper.make_node("Mul", [node.input[0], name], [f"{name}.times"]))
            nodes.append(helper.make_node("Add", [f"{name}.times", f"{name}.more"], [f"{name}.plus"]))
            moved.input[0] = f"{name}.plus"
        elif (place := RESULT_SCALES.get(node.op_type)) is not None:
            scale = node.input[place]
            if scale in known:
                weights.append(numpy_helper.from_array(np.asarray(known[scale] / factor), name))
            else:
                weights.append(numpy_helper.from_array(np.asarray(factor), f"{name}.less"))
                nodes.append(helper.make_node("Div", [scale, f"{name}.less"], [name]))
            moved.input[place] = name
        nodes.append(moved)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy
