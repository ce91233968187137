"""Operators of TensorFlow Lite against formulas of numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from tflite_files import OperatorCase, TensorCase, tflite_model
from tflite_random_tensors import RandomTensors, single_operator

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite
from glow_mlir.frontends.tflite.operators.fixed_point import exponential, reciprocals, root_of_reciprocal

RANDOM = np.random.default_rng(3)


def session_of(kind: str, tensors: Sequence[TensorCase], options: dict[int, tuple[str, object]] | None = None):
    """The session of one operator, whose result is the last tensor."""
    data = single_operator((kind, [*tensors], options)).data
    return InferenceSession(import_tflite(TfliteFile.of(memoryview(data))), threads=1)


def ints(*values: int) -> TensorCase:
    """A constant of i32."""
    return RandomTensors(0).constant(list(values))


CUBE = TensorCase((2, 3, 4))
WIDTHS = TensorCase((3, 2), "int32", np.array([[0, 0], [1, 0], [2, 1]], np.int32))

MOVES: dict[str, tuple[list[TensorCase], dict[int, tuple[str, object]] | None, Callable[[np.ndarray], np.ndarray]]] = {
    "REVERSE_V2": ([CUBE, ints(1, 2), CUBE], {}, lambda x: x[:, ::-1, ::-1]),
    "TILE": ([CUBE, ints(1, 2, 1), TensorCase((2, 6, 4))], {}, lambda x: np.tile(x, (1, 2, 1))),
    "GATHER": ([CUBE, ints(2, 0), TensorCase((2, 2, 4))], {0: ("i", 1)}, lambda x: x[:, [2, 0]]),
    "CUMSUM": ([CUBE, TensorCase((), "int32", np.array(2, np.int32)), CUBE], {}, lambda x: np.cumsum(x, 2)),
    "MIRROR_PAD": (
        [CUBE, WIDTHS, TensorCase((2, 4, 7))],
        {0: ("b", 1)},
        lambda x: np.pad(x, ((0, 0), (1, 0), (2, 1)), "symmetric"),
    ),
    "L2_NORMALIZATION": ([CUBE, CUBE], {0: ("b", 0)}, lambda x: x / np.linalg.norm(x, axis=2, keepdims=True)),
}
"""Operator → its tensors, its options, and the function that it is."""


@pytest.mark.parametrize("kind", MOVES)
def test_floats_against_numpy(kind: str) -> None:
    tensors, options, function = MOVES[kind]
    x = RANDOM.standard_normal(CUBE.shape).astype(np.float32)
    (found,) = session_of(kind, tensors, options).run(None, {"t0": x})
    np.testing.assert_allclose(found, function(x), rtol=1e-6, atol=1e-6)


def test_blocks_of_pixels_come_back() -> None:
    image, blocks, batch = TensorCase((1, 3, 4, 2)), ints(2, 2), TensorCase((4, 2, 2, 2))
    border = TensorCase((2, 2), "int32", np.array([[1, 0], [0, 0]], np.int32))
    data = tflite_model(
        [image, blocks, border, batch, image],
        [
            OperatorCase("SPACE_TO_BATCH_ND", (0, 1, 2), (3,), {}),
            OperatorCase("BATCH_TO_SPACE_ND", (3, 1, 2), (4,), {}),
        ],
        (0,),
        (4,),
    )
    x = RANDOM.standard_normal(image.shape).astype(np.float32)
    found = InferenceSession(import_tflite(TfliteFile.of(memoryview(data))), threads=1).run(None, {"t0": x})[0]
    np.testing.assert_array_equal(found, x)


SCALED = {
    "RELU6": (lambda x: x.clip(0, 6), 1),
    "LEAKY_RELU": (lambda x: np.where(x < 0, 0.25 * x, x), 1),
    "HARD_SWISH": (lambda x: x * (x + 3).clip(0, 6) / 6, 2),
    "ABS": (np.abs, 1),
    "TANH": (np.tanh, 1),
    "ELU": (lambda x: np.where(x < 0, np.expm1(x), x), 1),
}
"""Operator → the function, and the distance of quantized values that its roundings may have."""


@pytest.mark.parametrize("kind", SCALED)
def test_quantized_functions_are_near_their_formula(kind: str) -> None:
    function, units = SCALED[kind]
    own = TensorCase((1, 256), "int8", scales=[0.05], zeros=[-10])
    scale = 1 / 128 if kind == "TANH" else 0.06
    out = TensorCase((1, 256), "int8", scales=[scale], zeros=[0])
    options = {0: ("f", 0.25)} if kind == "LEAKY_RELU" else None
    x = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    (found,) = session_of(kind, [own, out], options).run(None, {"t0": x})
    wanted = np.round(function((x.astype(np.float64) + 10) * 0.05) / scale).clip(-128, 127)
    assert np.abs(found - wanted).max() <= units


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_quantized_softmax_is_near_its_formula(dtype: str) -> None:
    scale = 0.1 if dtype == "int8" else 5e-4
    size, zero = (256, -128) if dtype == "int8" else (32768, 0)
    own, out = TensorCase((4, 9), dtype, scales=[scale]), TensorCase((4, 9), dtype, scales=[1 / size], zeros=[zero])
    limits = np.iinfo(dtype)
    x = RANDOM.integers(limits.min, limits.max, own.shape).astype(dtype)
    (found,) = session_of("SOFTMAX", [own, out], {0: ("f", 1.0)}).run(None, {"t0": x})
    powers = np.exp((x - x.max(1, keepdims=True).astype(np.float64)) * scale)
    wanted = powers / powers.sum(1, keepdims=True) * size + zero
    assert np.abs(found - wanted).max() <= (1 if dtype == "int8" else 64)


def test_functions_in_fixed_point() -> None:
    divisors = np.arange(1, 256)
    multipliers, shifts = reciprocals(divisors)
    np.testing.assert_allclose(multipliers / 2.0**31 / 2.0**shifts, 1 / divisors, rtol=1e-8)
    x = -np.arange(0, 1 << 31, 12345678)
    np.testing.assert_allclose(exponential(x, 5) / 2.0**31, np.exp(x / 2.0**26), atol=1e-7)
    for value in (1, 2, 7, 1000, 65025, 123456789):
        multiplier, left = root_of_reciprocal(value)
        assert multiplier * 2.0 ** (left - 31) == pytest.approx(value**-0.5, rel=1e-4)


def test_states_of_filters_last_from_call_to_call() -> None:
    features, time = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (4, 5)))
    constant = RandomTensors(0).constant
    state = TensorCase((2, 20), is_variable=True)
    tensors = [TensorCase((2, 3)), constant(features), constant(time), None, state, TensorCase((2, 2))]
    session = session_of("SVDF", tensors, {0: ("i", 2), 1: ("b", 0)})  # pyright: ignore[reportArgumentType]
    past = np.zeros((2, 4, 5))
    for _ in range(7):
        x = RANDOM.standard_normal((2, 3)).astype(np.float32)
        past = np.concatenate([past[:, :, 1:], (x @ features.T)[:, :, None]], 2)
        wanted = (past * time).sum(2).reshape(2, 2, 2).sum(2)
        np.testing.assert_allclose(session.run(None, {"t0": x})[0], wanted, rtol=1e-5, atol=1e-5)
    session.reset_state()
    assert not any(array.any() for array in session.get_state().values())


@pytest.mark.parametrize("bounds", [(0, 0.3, 0.1), (0, 1, 0.1), (2, 900, 0.1), (0.7, -3, -0.3)])
def test_ranges_of_floats_are_sums_of_steps(bounds: tuple[float, float, float]) -> None:
    start, end, step = (np.float32(item) for item in bounds)
    count = int(np.ceil((end - start) / step))
    wanted = np.cumsum(np.array([start, *[step] * (count - 1)]), dtype=np.float32)
    tensors = [*[TensorCase((), values=np.array(item)) for item in (start, end, step)], TensorCase(wanted.shape)]
    tensors += [TensorCase(()), TensorCase(wanted.shape)]
    operators = [OperatorCase("RANGE", (0, 1, 2), (3,), {}), OperatorCase("ADD", (3, 4), (5,), {0: ("b", 0)})]
    session = InferenceSession(tflite_model(tensors, operators, (4,), (5,)), threads=1)
    np.testing.assert_array_equal(session.run(None, {"t4": np.zeros((), np.float32)})[0], wanted)


@pytest.mark.parametrize("axis", [0, 1])
def test_values_with_a_scale_for_each_index_are_dequantized(axis: int) -> None:
    scales, zeros = np.array([0.5, 0.1, 2], np.float32), np.array([3, -128, 7])
    own = TensorCase((3, 3), "int8", scales=scales.tolist(), zeros=zeros.tolist(), axis=axis)
    session, x = session_of("DEQUANTIZE", [own, TensorCase((3, 3))], {}), RANDOM.integers(-128, 128, (3, 3), np.int8)
    form = (3, 1) if axis == 0 else (1, 3)
    wanted = (x - zeros.reshape(form)).astype(np.float32) * scales.reshape(form)
    np.testing.assert_array_equal(session.run(None, {"t0": x})[0], wanted)


def test_strided_slices_have_new_axes_and_axes_without_numbers() -> None:
    cube = RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
    cases = [
        (ints(0, 1), ints(0, 3), {2: ("i", 1)}, cube[..., 1:3]),
        (ints(0, 0, 1), ints(0, 0, 3), {2: ("i", 1), 3: ("i", 2)}, cube[..., None, 1:3]),
        (ints(1, 0, 1, 0), ints(2, 0, 3, 0), {2: ("i", 2), 3: ("i", 8), 4: ("i", 1)}, cube[1, ..., 1:3, None]),
        (ints(0, 1), ints(0, 2), {3: ("i", 1), 4: ("i", 2)}, cube[None, 1]),
    ]
    for begin, end, options, wanted in cases:
        tensors = [CUBE, begin, end, ints(*[1] * begin.shape[0]), TensorCase(wanted.shape)]
        found = session_of("STRIDED_SLICE", tensors, options).run(None, {"t0": cube})[0]
        np.testing.assert_array_equal(found, wanted)
