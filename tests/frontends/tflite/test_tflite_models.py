"""Models of TensorFlow Lite: floats against numpy, integers against its roundings, and damaged files."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite_files import OperatorCase, TensorCase, tflite_model

from glow_mlir import GlowError, InferenceSession
from glow_mlir.errors import ModelError
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite
from glow_mlir.frontends.tflite.model import TfliteModel

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.standard_normal((4, 3, 3, 2)).astype(np.float32)
BIAS = RANDOM.standard_normal(4).astype(np.float32)

CONV = tflite_model(
    [
        TensorCase((1, 5, 6, 2)),
        TensorCase((4, 3, 3, 2), values=WEIGHTS),
        TensorCase((4,), values=BIAS),
        TensorCase((1, 3, 3, 4)),
    ],
    [OperatorCase("CONV_2D", (0, 1, 2), (3,), {0: ("b", 0), 1: ("i", 2), 2: ("i", 2), 3: ("b", 3)})],
    (0,),
    (3,),
)
"""A convolution with a border, in steps of 2, limited to 0 to 6."""

QUANTIZED_SUM = tflite_model(
    [
        TensorCase((2, 3), "int8", scales=[0.5], zeros=[4]),
        TensorCase((2, 3), "int8", scales=[0.125], zeros=[-9]),
        TensorCase((2, 3), "int8", scales=[0.75], zeros=[1]),
        TensorCase((2,), "int32", np.array([3, 2], np.int32)),
        TensorCase((3, 2), "int8", scales=[0.75], zeros=[1]),
    ],
    [OperatorCase("ADD", (0, 1), (2,), {0: ("b", 1)}), OperatorCase("RESHAPE", (2, 3), (4,))],
    (0, 1),
    (4,),
)
"""A sum of quantized values of three scales that is not negative."""


def session(data: bytes, folder: Path) -> InferenceSession:
    """A session with a file of these bytes."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    return InferenceSession(path, threads=1)


def test_a_convolution_of_floats(tmp_path: Path) -> None:
    found = session(CONV, tmp_path)
    assert [(item.name, item.shape) for item in found.get_inputs()] == [("t0", [1, 5, 6, 2])]
    x = RANDOM.standard_normal((1, 5, 6, 2)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (0, 1), (0, 0)))
    wanted = np.zeros((1, 3, 3, 4))
    for row, column in np.ndindex(3, 3):
        window = padded[0, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        wanted[0, row, column] = np.tensordot(WEIGHTS, window, 3) + BIAS
    np.testing.assert_allclose(found.run(None, {"t0": x})[0], wanted.clip(0, 6), rtol=1e-5, atol=1e-5)


def times(value: int, factor: float, is_single: bool) -> int:
    """An accumulator times a factor, rounded once with halves up, or twice as MultiplyByQuantizedMultiplier does."""
    fraction, exponent = np.frexp(factor)
    multiplier, shift = int(np.floor(fraction * 2.0**31 + 0.5)), 31 - int(exponent)
    if is_single:
        return (value * multiplier + (1 << shift - 1)) >> shift
    high, right = (value * multiplier + (1 << 30)) >> 31, shift - 31
    half, rest = (1 << right >> 1), abs(high) & ((1 << right) - 1)
    quotient = (abs(high) >> right) + (right > 0 and rest >= half)
    return quotient if high >= 0 else -quotient


@pytest.mark.parametrize("kind", ["FULLY_CONNECTED", "CONV_2D"])
def test_products_of_int8_have_the_roundings_of_the_reference(kind: str, tmp_path: Path) -> None:
    weights, bias = RANDOM.integers(-127, 128, (5, 7), np.int8), RANDOM.integers(-900, 900, 5).astype(np.int32)
    scales = (0.5 / RANDOM.integers(16, 300, 5)).astype(np.float32)
    own, out = np.float32(0.25), np.float32(0.75)
    is_matrix = kind == "FULLY_CONNECTED"
    shapes = [(9, 7), (5, 7), (9, 5)] if is_matrix else [(1, 9, 1, 7), (5, 1, 1, 7), (1, 9, 1, 5)]
    options = {} if is_matrix else {0: ("b", 1), 1: ("i", 1), 2: ("i", 1)}
    data = tflite_model(
        [
            TensorCase(shapes[0], "int8", scales=[float(own)], zeros=[-3]),
            TensorCase(shapes[1], "int8", weights, scales.tolist(), [0] * 5),
            TensorCase((5,), "int32", bias, (own * scales).tolist(), [0] * 5),
            TensorCase(shapes[2], "int8", scales=[float(out)], zeros=[7]),
        ],
        [OperatorCase(kind, (0, 1, 2), (3,), options)],
        (0,),
        (3,),
    )
    x = RANDOM.integers(-128, 128, (9, 7), np.int8)
    accumulators = (x.astype(np.int64) + 3) @ weights.astype(np.int64).T + bias
    factors = np.float64(own) * scales.astype(np.float64) / np.float64(out)
    wanted = [
        [times(int(value), factors[column], is_matrix) + 7 for column, value in enumerate(row)] for row in accumulators
    ]
    (found,) = session(data, tmp_path).run(None, {"t0": x.reshape(shapes[0])})
    np.testing.assert_array_equal(found.reshape(9, 5), np.clip(wanted, -128, 127))


def test_an_operator_that_is_not_supported_is_named(tmp_path: Path) -> None:
    data = tflite_model(
        [TensorCase((2,)), TensorCase((2,)), TensorCase((2,))],
        [OperatorCase("HASHTABLE", (0,), (1,)), OperatorCase("RELU", (1,), (2,))],
        (0,),
        (2,),
    )
    with pytest.raises(GlowError, match=r"model\.tflite: .*HASHTABLE is not supported"):
        session(data, tmp_path)


@pytest.mark.parametrize("size", [0, 7, 20, 200, len(CONV) - 1])
def test_files_that_are_cut_off_are_refused(size: int, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.tflite"):
        session(CONV[:size], tmp_path)


def outcome(data: bytes) -> str:
    """The error that an import ends in, or nothing."""
    try:
        import_tflite(TfliteFile.of(memoryview(data)))
    except GlowError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("model", [CONV, QUANTIZED_SUM])
def test_mutants_are_imported_or_refused(model: bytes) -> None:
    choose = random.Random(0)
    errors: list[str] = []
    for _ in range(300):
        data = bytearray(model)
        for _ in range(choose.randint(1, 4)):
            data[choose.randrange(8, len(data))] = choose.choice((0, 1, 127, 128, 255, choose.randrange(256)))
        errors.append(outcome(bytes(data)))
    assert not any("\n" in error for error in errors)
    assert len(set(errors)) > 20


def test_outputs_are_constants_or_the_same_tensor_twice(tmp_path: Path) -> None:
    known = RANDOM.standard_normal((2, 2)).astype(np.float32)
    tensors = [TensorCase((3,)), TensorCase((3,)), TensorCase((2, 2), values=known)]
    data = tflite_model(tensors, [OperatorCase("RELU", (0,), (1,))], (0,), (1, 2, 1, 0))
    x = np.array([-1, 2, -3], np.float32)
    for found, wanted in zip(
        session(data, tmp_path).run(None, {"t0": x}), (x.clip(0), known, x.clip(0), x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


INT8 = TensorCase((2, 3), "int8", scales=[0.5], zeros=[0])
AXIS = TensorCase((2, 3), "int8", scales=[0.5, 0.25, 1.0], zeros=[0, 0, 0], axis=1)
PIXEL = TensorCase((1, 3), "uint8", scales=[0.5], zeros=[3])
MATRIX = TensorCase((4, 3), "int8", np.ones((4, 3), np.int8), [0.5], [0])
ROWS = TensorCase((4, 3), values=np.ones((4, 3), np.float32))
PARTS = [TensorCase((3,), "int32", np.full(3, number, np.int32)) for number in (0, 2, 1)]

REFUSED = {
    "SQUARE": ([INT8, INT8], None, "quantized"),
    "QUANTIZE": ([TensorCase((2, 3)), AXIS], {}, "3 scales"),
    "ADD": ([AXIS, INT8, INT8], {0: ("b", 0)}, "3 scales"),
    "CONCATENATION": ([INT8, TensorCase((2, 3), "int8", scales=[0.5], zeros=[0])], {0: ("i", 0), 1: ("b", 1)}, "activ"),
    "FULLY_CONNECTED": ([PIXEL, MATRIX, TensorCase((1, 4), "uint8", scales=[0.5], zeros=[0])], {}, "uint8 with int8"),
    "FULLY_CONNECTED ordered": ([TensorCase((1, 3)), ROWS, TensorCase((1, 4))], {1: ("b", 1)}, "another order"),
    "STRIDED_SLICE": (
        [TensorCase((3, 3, 3)), *PARTS, TensorCase((2, 2, 3))],
        {1: ("i", 4), 5: ("?", True)},
        "relative",
    ),
}
"""Operator → its tensors, its options, and words of the error."""


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_be_wrong_is_refused(kind: str, tmp_path: Path) -> None:
    tensors, options, words = REFUSED[kind]
    numbers = range(len(tensors))
    given = [number for number in numbers[:-1] if tensors[number].values is None]
    operator = OperatorCase(kind.split()[0], numbers[:-1], numbers[-1:], options)
    with pytest.raises(GlowError, match=words):
        session(tflite_model(tensors, [operator], given, numbers[-1:]), tmp_path)


def test_a_variable_without_a_result_is_refused(tmp_path: Path) -> None:
    data = tflite_model([TensorCase((2,))], [OperatorCase("VAR_HANDLE", (), ())], (0,), (0,))
    with pytest.raises(ModelError, match="VAR_HANDLE: it has no result"):
        session(data, tmp_path)


SCALAR, EMPTY = (
    TensorCase((), "int32", np.array(1, np.int32)),
    TensorCase((1, 0, 2, 1), "int8", scales=[1.0], zeros=[0]),
)
REAL = TensorCase((2,), values=np.ones(2, np.float32))
RESIZED = TensorCase((1, 2, 2, 1), "int8", scales=[1.0], zeros=[0])
SMALL = TensorCase((1, 4, 4, 1), "int8", scales=[1e-40], zeros=[0])
POOL = {1: ("i", 1), 2: ("i", 1), 3: ("i", 1), 4: ("i", 1), 5: ("b", 3)}
LARGE = TensorCase((1 << 20, 1 << 20, 1 << 20, 0))

DAMAGED: dict[str, tuple[str, list[TensorCase], dict[int, Any] | None]] = {
    r"result of the shape \[1\], without four": (
        "TRANSPOSE_CONV",
        [SCALAR, TensorCase((1, 1, 1, 1)), TensorCase((1, 1, 1, 1)), TensorCase((1,))],
        {1: ("i", 1), 2: ("i", 1)},
    ),
    r"of int8 as int32 is not supported": ("MAX_POOL_2D", [RESIZED, replace(RESIZED, dtype="int32")], POOL),
    r"is not to the size \[2, 3\]": (
        "RESIZE_NEAREST_NEIGHBOR",
        [RESIZED, TensorCase((2,), "int32", np.array([2, 3], np.int32)), RESIZED],
        {},
    ),
    r"the axes is of float32, no integers": ("SUM", [TensorCase((2,)), REAL, TensorCase((1,))], {}),
    r"the begin is of float32, no integers": ("SLICE", [TensorCase((2,)), REAL, REAL, TensorCase((2,))], None),
    r"has parts without the 2 axes of its operand": ("SPLIT", [SCALAR, TensorCase((2, 2)), TensorCase((2,))], {}),
    r"axis 0 of \[1000000000\] does not fit 1 parts": ("UNPACK", [TensorCase((10**9,)), TensorCase(())], {}),
    r"images without elements": ("RESIZE_BILINEAR", [EMPTY, REAL, RESIZED], {}),
    r"has the shape \[1048576, 1048576, 1048576, 0\]": ("NEG", [LARGE, LARGE], None),
    r"'t1' of complex64 is not supported": ("CAST", [TensorCase((2,)), TensorCase((2,), "complex64")], {}),
    r"is of int8, not of f32": ("RELU", [TensorCase((2,)), TensorCase((2,), "int8")], None),
    r"a quotient of scales is no number": ("RELU", [RESIZED, replace(RESIZED, scales=[1e-42])], None),
}
"""What the error says → an operator, its tensors with the result last, and its options."""


@pytest.mark.parametrize("reason", DAMAGED)
def test_operands_that_do_not_fit_are_one_line(reason: str) -> None:
    kind, tensors, options = DAMAGED[reason]
    given = [number for number, item in enumerate(tensors[:-1]) if item.values is None]
    operator = OperatorCase(kind, range(len(tensors) - 1), (len(tensors) - 1,), options)
    with pytest.raises(GlowError, match=reason) as caught:
        TfliteModel(tflite_model(tensors, [operator], given, (len(tensors) - 1,))).module({})
    assert "\n" not in str(caught.value)


def test_limits_of_a_tiny_scale_are_those_of_the_type() -> None:
    operator = OperatorCase("MAX_POOL_2D", (0,), (1,), POOL)
    session = InferenceSession(tflite_model([SMALL, SMALL], [operator], (0,), (1,)), threads=1)
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(session.run(None, {"t0": x})[0], x.clip(0))
