"""Gradients of recurrent layers: by input, weights, biases, initial states and peepholes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients, differentiated, gradient_module
from xdsl.dialects.builtin import ArrayAttr, StringAttr, f16, f64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.activation_functions import GATE_FUNCTIONS
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.recurrent import GruOp, LstmOp, RnnOp
from glow_mlir.dialects.glow_high.reductions import ReduceSumSquareOp
from glow_mlir.dialects.shapes import rank_of
from glow_mlir.frontends.builder.module_builder import named_location
from glow_mlir.interpreter.machine import run_function

STEPS, BATCH, WIDTH, HIDDEN = 3, 2, 2, 2
OPERANDS: Mapping[type[HighOp], Sequence[str]] = {
    LstmOp: ("x", "w", "r", "b", "lengths", "h", "c", "p"),
    GruOp: ("x", "w", "r", "b", "lengths", "h"),
    RnnOp: ("x", "w", "r", "b", "lengths", "h"),
}
LAYERS = list(OPERANDS)


def drawn(*shape: int) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def arrays(kind: type[HighOp], names: str, directions: int = 1, batch_first: bool = False) -> dict[str, np.ndarray]:
    """The operands of a layer, whose names are letters."""
    assert issubclass(kind, LstmOp | GruOp | RnnOp)
    gates = kind.RECURRENCE.GATES * HIDDEN
    state = (BATCH, directions, HIDDEN) if batch_first else (directions, BATCH, HIDDEN)
    shapes = {
        "x": (BATCH, STEPS, WIDTH) if batch_first else (STEPS, BATCH, WIDTH),
        "w": (directions, gates, WIDTH),
        "r": (directions, gates, HIDDEN),
        "b": (directions, 2 * gates),
        "h": state,
        "c": state,
        "p": (directions, 3 * HIDDEN),
    }
    return {name: drawn(*shapes[name]) for name in names}


def sum_of_squares(value: SSAValue, emit: Emit) -> SSAValue:
    """The sum of the squares of all elements."""
    return emit(ReduceSumSquareOp, value, axes=range(rank_of(value)), keepdims=False)


def check(
    kind: type[HighOp], inputs: Mapping[str, np.ndarray], results: Sequence[int] = (0, 1), **properties: Any
) -> None:
    """Compare the gradient of the squares of some results."""

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        op = kind.make(*(values.get(name) for name in OPERANDS[kind]), location=named_location(kind.name), **properties)
        emit.insert(op)
        squares = [sum_of_squares(op.results[place], emit) for place in results]
        return reduce(lambda total, square: emit(AddOp, total, square), squares)

    check_gradients(graph, inputs)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", LAYERS)
def test_directions(kind: type[HighOp], direction: str) -> None:
    directions = 2 if direction == "bidirectional" else 1
    check(kind, arrays(kind, "xwrbh", directions), direction=direction)


@pytest.mark.parametrize("kind", LAYERS)
def test_batch_first(kind: type[HighOp]) -> None:
    check(kind, arrays(kind, "xrh", batch_first=True) | arrays(kind, "w"), batch_first=True)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("kind", LAYERS)
def test_sequence_lengths(kind: type[HighOp], direction: str) -> None:
    inputs = arrays(kind, "xwrh") | {"lengths": np.array([1, 3], np.int32)}
    check(kind, inputs, direction=direction)


@pytest.mark.parametrize("results", [(0,), (1,), (2,)])
def test_results_of_lstm(results: tuple[int, ...]) -> None:
    check(LstmOp, arrays(LstmOp, "xwrhc"), results)


def test_peepholes() -> None:
    check(LstmOp, arrays(LstmOp, "xwrcp"), (0, 2), direction="reverse")


def test_peepholes_with_lengths() -> None:
    check(LstmOp, arrays(LstmOp, "xwrcp") | {"lengths": np.array([3, 2], np.int32)}, (0, 2))


def test_coupled_gates() -> None:
    check(LstmOp, arrays(LstmOp, "xwr"), input_forget=True)


def test_reset_gate_behind_the_product() -> None:
    check(GruOp, arrays(GruOp, "xwrbh"), linear_before_reset=True, direction="reverse")


@pytest.mark.parametrize("lengths", [False, True])
def test_reset_gate_behind_the_product_without_bias(lengths: bool) -> None:
    inputs = arrays(GruOp, "xwr") | ({"lengths": np.array([3, 1], np.int32)} if lengths else {})
    check(GruOp, inputs, linear_before_reset=True)


@pytest.mark.parametrize("first", [0, 6])
def test_gate_functions(first: int) -> None:
    names = [*GATE_FUNCTIONS, "affine"][first : first + 6]
    functions = ArrayAttr(map(StringAttr, names))
    inputs = arrays(LstmOp, "xwr", 2)
    check(LstmOp, inputs, direction="bidirectional", activations=functions, alphas=[0.7] * 6, betas=[0.4] * 6)


def test_clip() -> None:
    check(LstmOp, arrays(LstmOp, "xwr"), clip=0.3)


def test_one_step() -> None:
    inputs = {**arrays(LstmOp, "wrhc"), "x": drawn(1, BATCH, WIDTH)}
    check(LstmOp, inputs, (0, 1, 2))


SECOND: Sequence[tuple[type[HighOp], str, Mapping[str, Any]]] = [
    (LstmOp, "xrhcp", {}),
    (LstmOp, "xrh", {"direction": "reverse", "input_forget": True}),
    (GruOp, "xrh", {}),
    (GruOp, "xrb", {"linear_before_reset": True}),
    (RnnOp, "xrh", {}),
]
"""Layers, the operands by which they are differentiated twice, and properties."""


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize(("kind", "names", "properties"), SECOND)
def test_second_derivatives(kind: type[HighOp], names: str, properties: Mapping[str, Any], lengths: bool) -> None:
    """The gradient of the squares of a gradient, which looks at what the recurrence has kept."""
    inputs = arrays(kind, "".join(dict.fromkeys("xwr" + names)))
    if lengths:
        inputs["lengths"] = np.array([1, 3], np.int32)

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        op = kind.make(*(values.get(name) for name in OPERANDS[kind]), location=named_location(kind.name), **properties)
        emit.insert(op)
        total = reduce(partial(emit, AddOp), [sum_of_squares(result, emit) for result in op.results])
        first = emit.insert(
            GradientOp.make(total, None, [values[name] for name in names], location=named_location("first"))
        )
        return reduce(partial(emit, AddOp), [sum_of_squares(result, emit) for result in first.results])

    check_gradients(graph, inputs, list(names), rtol=1e-4)


def test_a_recurrence_is_computed_once() -> None:
    """What differentiates it takes its place, and keeps sums for all gradients."""
    inputs = arrays(LstmOp, "xwr")
    module = differentiated(gradient_module(_wide_graph, inputs, ["x", "r"]))
    names = [op.name for op in module.walk() if "lstm" in op.name]
    assert names == ["glow_high.lstm_recurrence_with_sums"]


def test_half_floats_are_computed_with_in_f32() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        narrow = [emit(CastOp, values[name], to=f16) for name in "xwr"]
        op = LstmOp.make(*narrow, location=named_location("lstm"))
        emit.insert(op)
        return emit(CastOp, sum_of_squares(op.results[0], emit), to=f64)

    inputs = arrays(LstmOp, "xwr")
    wide = run_function(differentiated(gradient_module(_wide_graph, inputs, list("xwr"))), inputs)
    narrow = run_function(differentiated(gradient_module(graph, inputs, list("xwr"))), inputs)
    for name in "xwr":
        np.testing.assert_allclose(narrow[f"d{name}"], wide[f"d{name}"], rtol=0.02, atol=0.004)


def _wide_graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
    op = LstmOp.make(*(values[name] for name in "xwr"), location=named_location("lstm"))
    emit.insert(op)
    return sum_of_squares(op.results[0], emit)


def test_saturated_gates_have_no_slope() -> None:
    """Where a sigmoid's exponential overflows, its derivative is 0."""
    inputs = {name: value * 1e4 for name, value in arrays(LstmOp, "xwr").items()}
    found = run_function(differentiated(gradient_module(_wide_graph, inputs, list("xwr"))), inputs)
    assert all(np.isfinite(found[f"d{name}"]).all() for name in "xwr")


@pytest.mark.extra
def test_lstm_beside_torch() -> None:
    torch = pytest.importorskip("torch")
    x, w, r, b = (array[0] if name != "x" else array for name, array in arrays(LstmOp, "xwrb").items())
    layer = torch.nn.LSTM(WIDTH, HIDDEN, dtype=torch.float64)
    order = np.arange(4 * HIDDEN).reshape(4, HIDDEN)[[0, 2, 3, 1]].ravel()  # Its gates are input, forget, cell, output.
    parameters = (w, r, *np.split(b, 2))
    for parameter, array in zip(layer.parameters(), parameters, strict=True):
        parameter.data = torch.from_numpy(array[order].copy())
    given = torch.from_numpy(x).requires_grad_()
    (layer(given)[0] ** 2).sum().backward()
    inputs = arrays(LstmOp, "xwrb")
    found = run_function(differentiated(gradient_module(_lstm_with_bias, inputs, list("xwrb"))), inputs)
    by_bias = np.split(found["db"][0], 2)
    expected = [given.grad, *(parameter.grad for parameter in layer.parameters())]
    ours = [found["dx"], *(array[order] for array in (found["dw"][0], found["dr"][0], *by_bias))]
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-9, atol=1e-12)


def _lstm_with_bias(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
    op = LstmOp.make(*(values[name] for name in "xwrb"), location=named_location("lstm"))
    emit.insert(op)
    return sum_of_squares(op.results[0], emit)
