"""Kernels over windows: machine code and interpreter against numpy, with bounds, threads and run-time sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects.builtin import f32

import glow_mlir
from glow_mlir import kernels as k
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import GlowError
from glow_mlir.kernels.kernel import Kernel
from glow_mlir.support.symbols import Symbol, SymbolicSize

Array = np.ndarray


@glow_mlir.kernel("x[n, 2*h + p - 1, w + 2*q - 2, c] -> y[n, h, w, c]; p < 3, q < 3")
def mean_of_pixels(x: k.Tensor) -> k.Tensor:
    return k.reduce_mean(x, ["p", "q"])


@glow_mlir.kernel("x[n, c, h + p - 1, 2*w + q - 1] -> y[n, c, h, w]; p < 2, q < 3")
def spread_of_rows(x: k.Tensor) -> k.Tensor:
    return k.reduce_max(x, ["p", "q"]) - k.reduce_min(x, ["p", "q"])


@glow_mlir.kernel("x[n, h + p - 1, c], w[p, c, o] -> y[n, h, o]")
def convolution(x: k.Tensor, w: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * w, ["p", "c"])


@glow_mlir.kernel("x[..., c], around[..., c + j - 2] -> y[..., c]; j < 5")
def response(x: k.Tensor, around: k.Tensor) -> k.Tensor:
    return x / (1.0 + 0.1 * k.reduce_sum(around * around, "j")) ** 0.75


@glow_mlir.kernel("x[3*i + j + 1] -> y[i]; j < 2, i < 4")
def norm_of_gaps(x: k.Tensor) -> k.Tensor:
    return k.sqrt(k.reduce_sum(x * x, "j")) + 0.5 * k.size_along(x, "j")


@glow_mlir.kernel("x[i + j - 1, c], mask[i + j - 2, c] -> y[i, c]; j < 3")
def of_two(x: k.Tensor, mask: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * mask, "j") + k.reduce_max(x, "j")


@glow_mlir.kernel("x[n, 2*h + p - 1, w + q - 1, c] -> y[n, h, w, c]; p < 3, q < 3")
def sum_of_integers(x: k.Tensor) -> k.Tensor:
    return k.reduce_sum(k.cast(x, "int32"), ["p", "q"]) - k.size_along(k.cast(x, "int32"), ["p", "q"], 7)


@glow_mlir.kernel("x[n, c, h, w], around[n, c + j - 1, h, w] -> y[n, c, h, w]; j < 3")
def response_of_planes(x: k.Tensor, around: k.Tensor) -> k.Tensor:
    return x * (1.0 + 0.1 * k.reduce_sum(around * around, "j")) ** -0.5


def _windows(x: Array, axis: int, count: int, step: int, taps: int, apart: int, start: int) -> Array:
    """Windows along an axis, with the steps of each behind all axes; NaN outside."""
    wide = np.pad(x, [(20, 20) if a == axis else (0, 0) for a in range(x.ndim)], constant_values=np.nan)
    seen = sliding_window_view(wide, (taps - 1) * apart + 1, axis)[..., ::apart]
    return np.moveaxis(np.moveaxis(seen, axis, 0)[20 + start :: step][:count], 0, axis)


def _mean_of_pixels(x: Array) -> Array:
    count = (x.shape[1] + 2 - 3) // 2 + 1
    return np.nanmean(_windows(_windows(x, 1, count, 2, 3, 1, -1), 2, x.shape[2], 1, 3, 2, -2), (-1, -2))


def _spread_of_rows(x: Array) -> Array:
    rows, columns = x.shape[2] + 1, (x.shape[3] + 2 - 3) // 2 + 1
    seen = _windows(_windows(x, 2, rows, 1, 2, 1, -1), 3, columns, 2, 3, 1, -1)
    return np.nanmax(seen, (-1, -2)) - np.nanmin(seen, (-1, -2))


def _convolution(x: Array, w: Array) -> Array:
    seen = np.nan_to_num(_windows(x, 1, x.shape[1] + 3 - len(w), 1, len(w), 1, -1))
    return np.einsum("nhcp,pco->nho", seen, w)


def _response(x: Array, around: Array) -> Array:
    last = x.ndim - 1
    return x / (1 + 0.1 * np.nansum(_windows(around, last, x.shape[last], 1, 5, 1, -2) ** 2, -1)) ** 0.75


def _response_of_planes(x: Array, around: Array) -> Array:
    seen = _windows(around, 1, x.shape[1], 1, 3, 1, -1)
    return x / np.sqrt(1 + 0.1 * np.nansum(seen * seen, -1))


def _norm_of_gaps(x: Array) -> Array:
    seen = _windows(x, 0, 4, 3, 2, 1, 1)
    return np.sqrt(np.nansum(seen**2, -1)) + 0.5 * (~np.isnan(seen)).sum(-1)


def _of_two(x: Array, mask: Array) -> Array:
    one, other = _windows(x, 0, len(x), 1, 3, 1, -1), _windows(mask, 0, len(x), 1, 3, 1, -2)
    return np.nansum(one * other, -1) + np.nanmax(one, -1)


SUMS = "a sum has one dimension that is folded, and each a number above 0 of times"

Case = tuple[Kernel, tuple[tuple[int, ...], ...], Callable[..., Array]]

CASES: list[Case] = [
    *((mean_of_pixels, (shape,), _mean_of_pixels) for shape in ((2, 9, 8, 5), (1, 5, 3, 40), (1, 3, 1, 16))),
    *((spread_of_rows, (shape,), _spread_of_rows) for shape in ((1, 3, 6, 70), (2, 2, 5, 9), (1, 1, 1, 2))),
    *((convolution, ((2, 9, 6), (3, 6, o)), _convolution) for o in (33, 1)),
    *((response, (shape, shape), _response) for shape in ((2, 3, 40), (3, 5), (4, 1))),
    *((response_of_planes, (shape, shape), _response_of_planes) for shape in ((2, 5, 3, 7), (3, 4, 1, 1))),
    *((norm_of_gaps, ((size,),), _norm_of_gaps) for size in (20, 9, 2)),
    (of_two, ((9, 20), (9, 20)), _of_two),
    (of_two, ((4, 3), (5, 3)), _of_two),
]
NAMES = [f"{kernel.name}-{'x'.join(map(str, shapes[0]))}" for kernel, shapes, _ in CASES]


def _arrays(shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _run(kernel: Kernel, arrays: list[Array], **options: object) -> Array:
    module = kernel.module(*(tensor(array.shape, element_type(array.dtype)) for array in arrays))
    feeds = {access.name: array for access, array in zip(kernel.signature.operands, arrays, strict=True)}
    return glow_mlir.InferenceSession(module, cache=False, **options).run(None, feeds)[0]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_values(case: Case) -> None:
    kernel, shapes, reference = case
    arrays = _arrays(shapes)
    expected = reference(*(array.astype(np.float64) for array in arrays))
    for options in ({}, {"backend": "interpreter"}, {"target": "scalar"}, {"threads": 3}):
        found = _run(kernel, arrays, **options)
        assert (found.dtype, found.shape) == (np.float32, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", ["host", "scalar", "avx2"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_sums_of_integers(dtype: str, target: str) -> None:
    """Those that fill vectors, and those of a rest, with windows that reach over the ends."""
    info = np.iinfo(dtype)
    for channels in (3, 45, 64):
        x = np.random.default_rng(channels).integers(info.min, info.max + 1, (2, 7, 6, channels)).astype(dtype)
        seen = _windows(_windows(x.astype(np.float64), 1, 4, 2, 3, 1, -1), 2, 6, 1, 3, 1, -1)
        expected = (np.nansum(seen, (-1, -2)) - 7 * (seen == seen).sum((-1, -2))).astype(np.int32)
        np.testing.assert_array_equal(_run(sum_of_integers, [x], target=target), expected)
        np.testing.assert_array_equal(_run(sum_of_integers, [x], backend="interpreter"), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float64"])
def test_other_elements(dtype: str) -> None:
    x = (np.random.default_rng(0).integers(0, 200, (1, 3, 6, 40)) * 1).astype(dtype)
    seen = _windows(_windows(x.astype(np.float64), 2, 7, 1, 2, 1, -1), 3, 20, 2, 3, 1, -1)
    expected = (np.nanmax(seen, (-1, -2)) - np.nanmin(seen, (-1, -2))).astype(np.int64).astype(dtype)
    for backend in ("cpu", "interpreter"):
        np.testing.assert_array_equal(_run(spread_of_rows, [x], backend=backend), expected)


def test_sizes_that_are_known_at_run_time_only() -> None:
    rows, columns = (SymbolicSize.of(Symbol(name, 1, 30)) for name in ("rows", "columns"))
    for kernel, reference in ((mean_of_pixels, _mean_of_pixels), (spread_of_rows, _spread_of_rows)):
        module = kernel.module(tensor((2, rows, columns, 16), f32))
        session = glow_mlir.InferenceSession(module, threads=2, cache=False)
        meaning = glow_mlir.InferenceSession(module, backend="interpreter")
        for shape in ((2, 1, 1, 16), (2, 30, 3, 16), (2, 7, 30, 16)):
            (x,) = _arrays((shape,))
            for one in (session, meaning):
                np.testing.assert_allclose(one.run(None, {"x": x})[0], reference(x), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("signature", "shape", "along", "message"),
    [
        ("x[i + j] -> y[i]", 5, "j", "the size of 'j' in i + j is unknown: write it, as in '; j < 3'"),
        ("x[i + j] -> y[i]; j < 3", 2, "j", "a window of 3 along i + j exceeds 2 elements and what is beside them"),
        ("x[i + j] -> y[i, j]; j < 3", 5, "", SUMS),
        ("x[2*i + 4*j + k] -> y[i]; j < 3, k < 2", 50, "jk", SUMS),
        ("x[2*i + 1] -> y[i]", 50, "", SUMS),
    ],
)
def test_what_windows_are_not(signature: str, shape: int, along: str, message: str) -> None:
    @glow_mlir.kernel(signature)
    def folded(x: k.Tensor) -> k.Tensor:
        return k.reduce_sum(x, list(along)) if along else x

    with pytest.raises(GlowError) as caught:
        folded.module(tensor((shape,), f32))
    assert str(caught.value) == f"kernel folded: {message}"


def _in_turns(x: k.Tensor) -> k.Tensor:
    return k.reduce_sum(k.reduce_sum(x, "j"), "c")


def _numbered(x: k.Tensor) -> k.Tensor:
    return k.reduce_sum(x * k.indices(x, "c"), ["j", "c"])


def _place(x: k.Tensor) -> k.Tensor:
    return k.position(x, "j")


def _less_the_largest(x: k.Tensor) -> k.Tensor:
    return x - k.reduce_max(x, "i")


@pytest.mark.parametrize(
    ("fold", "result", "message"),
    [
        (_in_turns, "i", "folds along windows are along all dimensions that are folded at all"),
        (_place, "i, c", "positions and running folds are not along windows"),
        (_numbered, "i", "indices are not along windows"),
        (_less_the_largest, "i, j, c", "windows are folded: each dimension of the result is parallel, in each fold"),
    ],
)
def test_folds_that_windows_do_not_have(fold: Callable[[k.Tensor], k.Tensor], result: str, message: str) -> None:
    @glow_mlir.kernel(f"x[i + j, c] -> y[{result}]; j < 2")
    def folded(x: k.Tensor) -> k.Tensor:
        return fold(x)

    with pytest.raises(GlowError) as caught:
        folded.module(tensor((7, 3), element_type(np.dtype("int32"))))
    assert str(caught.value) == f"kernel folded: {message}"


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("x[i + i] -> y[i]", "'i + i' has a dimension twice, or not times a number above 0"),
        ("x[i - j] -> y[i]", "'i - j' has a dimension twice, or not times a number above 0"),
        ("x[i + 2*] -> y[i]", "'i + 2*' is no axis"),
        ("x[i + j] -> y[i + j]", "y[i + j] has a sum"),
        ("x[i + j] -> y[i]; j = 3", "'j = 3' is no size"),
        ("x[i, j] -> y[i]; j < 3", "the size of 'j' is given, but it is in no sum alone"),
    ],
)
def test_sums_that_are_none(signature: str, message: str) -> None:
    with pytest.raises(GlowError) as caught:
        glow_mlir.kernel(signature)
    assert str(caught.value).startswith(f"the signature '{signature}': {message}")
