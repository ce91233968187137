"""
Transform matrices of Winograd's algorithm for convolutions with 3x3 filters.

F(m x m, 3x3) computes a tile of m x m outputs from n x n inputs with one product at each of n x n points, instead of
nine for each output: `A^T ((G g G^T) * (B^T d B)) A` (Lavin and Gray, arXiv 1509.09308). The matrices of each axis
follow from a set of points by the Toom-Cook construction; the last row belongs to infinity.

With stride two, even taps of the filter multiply even inputs, and its odd tap odd inputs. The even taps form a filter
of two with stride one, F(m, 2); the odd tap takes a product for each output, all with the same weight.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from glow_mlir.support.dataclass import dataclass

TAPS = 3
"""Elements of a line of the filter."""

POINTS: dict[tuple[int, int], tuple[float, ...]] = {
    (2, 3): (0, 1, -1),
    (4, 3): (0, 5 / 8, -5 / 8, 3 / 2, -3 / 2),
    (2, 2): (1, -1),
    (4, 2): (1 / 2, -1 / 2, 5 / 4, -5 / 4),
}
"""
(Outputs of a line of a tile, taps) → points. Opposite points share half of their arithmetic, and all entries of A and B
are exact in f32. The points for four outputs are the most accurate measured: for three taps, they have a third of the
error of the usual ±1 and ±2.
"""

OUTPUTS = (2, 4)
"""Supported numbers of outputs of a line or a column of a tile."""

STRIDES = (1, 2)
"""Supported strides of the filter."""


@dataclass(frozen=True)
class Transforms:
    """
    The matrices in one dimension, in f64: `filter` G [w, 3], `input` B^T [n, n], `output` A^T [m, n].

    Each point has a weight of its own, except that the last of the w weights is shared by all points from its number
    on.
    """

    filter: np.ndarray
    input: np.ndarray
    output: np.ndarray

    @property
    def outputs(self) -> int:
        """Outputs of a line of a tile, m."""
        return self.output.shape[0]

    @property
    def inputs(self) -> int:
        """Inputs of a line of a tile, and points, n."""
        return self.output.shape[1]

    @property
    def weights(self) -> int:
        """Weights of a line of the filter, w."""
        return self.filter.shape[0]


@cache
def transforms(outputs: int, stride: int = 1) -> Transforms:
    """The transforms for that many outputs and stride one or two; raises `KeyError` if there are none."""
    if stride == 1:
        return _toom_cook(outputs, TAPS)
    even = _toom_cook(outputs, (TAPS + 1) // stride)
    inputs = stride * (outputs - 1) + TAPS
    filter_ = np.zeros((even.inputs + 1, TAPS))
    input_, output = np.zeros((inputs, inputs)), np.zeros((outputs, inputs))
    filter_[: even.inputs, ::2], filter_[even.inputs, 1] = even.filter, 1
    input_[: even.inputs, ::2], output[:, : even.inputs] = even.input, even.output
    input_[even.inputs :, 1::2] = output[:, even.inputs :] = np.eye(outputs)
    return Transforms(filter_, input_, output)


def _toom_cook(outputs: int, taps: int) -> Transforms:
    """The transforms of filters of that many taps with stride one."""
    points = POINTS[outputs, taps]
    inputs = outputs + taps - 1
    filter_, input_, output = np.zeros((inputs, taps)), np.zeros((inputs, inputs)), np.zeros((outputs, inputs))
    for index, point in enumerate(points):
        others = [other for other in points if other != point]
        filter_[index] = np.power(point, range(taps)) / np.prod([point - other for other in others])
        input_[index, :-1] = _polynomial(others)
        output[:, index] = np.power(point, range(outputs))
    filter_[-1, -1] = output[-1, -1] = 1
    input_[-1] = _polynomial(points)
    return Transforms(filter_, input_, output)


def _polynomial(roots: list[float] | tuple[float, ...]) -> np.ndarray:
    """The coefficients, lowest first, of the monic polynomial with those roots."""
    return np.poly(np.array(roots, dtype=np.float64))[::-1]


@dataclass(frozen=True)
class TileForm:
    """The tiles of a convolution: outputs of a column (`height`) and of a line (`width`), and the filter's stride."""

    height: int
    width: int
    stride: int = 1

    @cached_property
    def axes(self) -> tuple[Transforms, Transforms]:
        """The transforms along columns and along lines."""
        return transforms(self.height, self.stride), transforms(self.width, self.stride)

    @property
    def inputs(self) -> tuple[int, int]:
        """Inputs of a column and of a line, equal to the numbers of points."""
        vertical, horizontal = self.axes
        return vertical.inputs, horizontal.inputs

    @property
    def weights(self) -> tuple[int, int]:
        """Weights of a column and of a line of the filter."""
        vertical, horizontal = self.axes
        return vertical.weights, horizontal.weights

    @property
    def filter(self) -> np.ndarray:
        """The matrix of the filter transform, from nine elements to the weights."""
        vertical, horizontal = self.axes
        return np.kron(vertical.filter, horizontal.filter)


def transform_filters(filters: np.ndarray, form: TileForm) -> np.ndarray:
    """
    The weights `[w * w, C, O]` of filters `[O, 3, 3, C]`, in f64.

    Raises `ValueError` for filters of another size.
    """
    count, *taps, channels = filters.shape
    if taps != [TAPS, TAPS]:
        raise ValueError(f"filters of {taps} have no transform, only those of 3x3")
    lines = np.moveaxis(filters, 0, -1).astype(np.float64, order="C").reshape(TAPS * TAPS, -1)
    return (form.filter @ lines).reshape(-1, channels, count)


def restore_filters(weights: np.ndarray, form: TileForm) -> np.ndarray:
    """
    Reconstruct the filters `[O, 3, 3, C]` from the output of `transform_filters`.

    The weights overdetermine a filter: the least-squares solution differs from the original by rounding.
    """
    _, channels, count = weights.shape
    taps = np.linalg.pinv(form.filter) @ weights.reshape(weights.shape[0], -1).astype(np.float64)
    return np.ascontiguousarray(np.moveaxis(taps.reshape(TAPS, TAPS, channels, count), -1, 0)).astype(weights.dtype)
