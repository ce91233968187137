"""Gathers and scatters of StableHLO in all their forms, against loops over their elements as the specification has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from stablehlo_programs import check, region, scalar_of, signature_of


@dataclass
class Form:
    """Random dimension numbers: see `Indexing` of the importer."""

    shape: list[int]
    sizes: list[int]
    dropped: list[int]
    batching: list[int]
    mapped: list[int]
    batch: list[int]
    along: list[int]
    """The dimension of the indices of each batching axis."""
    vector: int
    offsets: list[int]

    @property
    def kept(self) -> list[int]:
        return [axis for axis in range(len(self.shape)) if axis not in self.dropped and axis not in self.batching]

    @property
    def indices_shape(self) -> list[int]:
        return [*self.batch[: self.vector], len(self.mapped), *self.batch[self.vector :]]

    @property
    def shape_of_slices(self) -> list[int]:
        sizes, batch = iter(self.sizes[axis] for axis in self.kept), iter(self.batch)
        rank = len(self.kept) + len(self.batch)
        return [next(sizes) if at in self.offsets else next(batch) for at in range(rank)]

    def numbers(self, words: tuple[str, ...]) -> str:
        along = [at + (at >= self.vector) for at in self.along]
        lists = (self.offsets, self.dropped, self.batching, along, self.mapped)
        fields = [f"{word} = {item}" for word, item in zip(words, lists, strict=True) if item]
        return f"<{', '.join([*fields, f'index_vector_dim = {self.vector}'])}>"

    def start(self, indices: np.ndarray, position: list[int]) -> list[int]:
        """The start of the slice at a position of the batch, before it is clamped."""
        row = indices[tuple([*position[: self.vector], slice(None), *position[self.vector :]])]
        found = [0] * len(self.shape)
        for axis, number in zip(self.mapped, row, strict=True):
            found[axis] = int(number)
        for axis, at in zip(self.batching, self.along, strict=True):
            found[axis] = position[at]
        return found

    def split(self, position: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """The position in the batch, and that in the slice along all axes, of an element of the slices."""
        inner = dict(zip(self.kept, (position[at] for at in self.offsets), strict=True))
        outer = [number for at, number in enumerate(position) if at not in self.offsets]
        return outer, [inner.get(axis, 0) for axis in range(len(self.shape))]


def drawn(seed: int) -> tuple[Form, np.random.Generator]:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = [int(size) for size in rng.integers(1, 5, rank)]
    batch = [int(size) for size in rng.integers(1, 4, rng.integers(0, 4))]
    order = [int(axis) for axis in rng.permutation(rank)]
    count = int(rng.integers(0, min(rank - 1, len(batch)) + 1))
    batching, rest = sorted(order[:count]), order[count:]
    along = [int(at) for at in rng.permutation(len(batch))[:count]]
    for axis, at in zip(batching, along, strict=True):
        shape[axis] = batch[at]
    mapped = rest[: int(rng.integers(1, len(rest) + 1))]
    dropped = sorted(axis for axis in rest if rng.random() < 0.5)
    sizes = [
        1 if axis in dropped or axis in batching else int(rng.integers(1, shape[axis] + 1)) for axis in range(rank)
    ]
    kept = rank - len(dropped) - len(batching)
    offsets = sorted(int(at) for at in rng.permutation(kept + len(batch))[:kept])
    vector = int(rng.integers(0, len(batch) + 1))
    return Form(shape, sizes, dropped, batching, mapped, batch, along, vector, offsets), rng


GATHER = ("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims")
SCATTER = ("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims")


SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_gathers_are_loops_over_elements(seed: int) -> None:
    form, rng = drawn(seed)
    x = rng.integers(-99, 99, form.shape).astype(np.int32)
    indices = rng.integers(-2, 6, form.indices_shape).astype(rng.choice([np.int32, np.int64, np.int8]))
    expected = np.zeros(form.shape_of_slices, np.int32)
    for position in np.ndindex(expected.shape):
        outer, inner = form.split(position)
        limits = [size - window for size, window in zip(form.shape, form.sizes, strict=True)]
        start = [min(max(at, 0), most) for at, most in zip(form.start(indices, outer), limits, strict=True)]
        # Batching axes are not clamped: their positions are those of the batch.
        start = [
            at if axis not in form.batching else outer[form.along[form.batching.index(axis)]]
            for axis, at in enumerate(start)
        ]
        expected[position] = x[tuple(at + more for at, more in zip(start, inner, strict=True))]
    numbers = form.numbers((*GATHER, "start_index_map"))
    sizes = ", ".join(map(str, form.sizes))
    properties = f"dimension_numbers = #stablehlo.gather{numbers}, slice_sizes = array<i64: {sizes}>"
    body = f'%r = "stablehlo.gather"(%0, %1) <{{{properties}}}> : {signature_of([x, indices], [expected])}'
    check(body, [x, indices], [expected])


BODIES: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "set": ("stablehlo.return %b : {t}", lambda old, new: new),
    "add": ("%c = stablehlo.add %b, %a : {t}\nstablehlo.return %c : {t}", lambda old, new: old + new),
    "subtract": ("%c = stablehlo.subtract %a, %b : {t}\nstablehlo.return %c : {t}", lambda old, new: old - new),
    "max": ("%c = stablehlo.maximum %a, %b : {t}\nstablehlo.return %c : {t}", max),
    "any": (
        "%c = stablehlo.add %a, %a : {t}\n%d = stablehlo.add %c, %b : {t}\nstablehlo.return %d : {t}",
        lambda old, new: 2 * old + new,
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_scatters_are_loops_over_slices(seed: int) -> None:
    kind = list(BODIES)[seed % len(BODIES)]
    form, rng = drawn(seed)
    x = rng.integers(-9, 9, form.shape).astype(np.int32)
    indices = rng.integers(-1, 4, form.indices_shape).astype(np.int32)
    updates = rng.integers(-9, 9, form.shape_of_slices).astype(np.int32)
    expected = x.copy()
    for position in np.ndindex(updates.shape):
        outer, inner = form.split(position)
        start = form.start(indices, outer)
        bounds = zip(start, form.shape, form.sizes, strict=True)
        if all(0 <= at <= size - window for at, size, window in bounds):
            into = tuple(at + more for at, more in zip(start, inner, strict=True))
            expected[into] = BODIES[kind][1](int(expected[into]), int(updates[position]))
    numbers = form.numbers((*SCATTER, "scatter_dims_to_operand_dims"))
    operands = [x, indices, updates]
    body = (
        f'%r = "stablehlo.scatter"(%0, %1, %2) <{{scatter_dimension_numbers = #stablehlo.scatter{numbers}}}> '
        f"{region([x, updates], BODIES[kind][0].format(t=scalar_of(x)))} : {signature_of(operands, [x])}"
    )
    check(body, operands, [expected])


def test_scatters_of_several_tensors_share_their_indices() -> None:
    x, y = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.int32)
    indices = np.array([[1], [1], [9]], np.int32)
    u, v = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.int32)
    combined = """%e = stablehlo.multiply %a, %c : tensor<f32>
    %f = stablehlo.add %b, %d : tensor<i32>
    %g = stablehlo.convert %b : (tensor<i32>) -> tensor<f32>
    %h = stablehlo.add %e, %g : tensor<f32>
    stablehlo.return %h, %f : tensor<f32>, tensor<i32>"""
    numbers = "<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    operands = [x, y, indices, u, v]
    body = (
        f'%r:2 = "stablehlo.scatter"(%0, %1, %2, %3, %4) <{{scatter_dimension_numbers = #stablehlo.scatter{numbers}}}> '
        f"{region([x, y, u, v], combined)} : {signature_of(operands, [x, y])}"
    )
    check(body, operands, [np.array([0, 9, 2, 3], np.float32), np.array([0, 10, 2, 3], np.int32)])


@pytest.mark.parametrize(("dtype", "start"), [(np.uint8, 250), (np.int8, -3), (np.uint64, 2**63 + 5), (np.int64, -9)])
def test_starts_of_any_integers_are_clamped(dtype: type, start: int) -> None:
    x, at = np.arange(6, dtype=np.float32), np.array(start, dtype)
    first = 0 if start < 0 else 4
    types = signature_of([x, at], [x[:2]])
    check(
        f'%r = "stablehlo.dynamic_slice"(%0, %1) <{{slice_sizes = array<i64: 2>}}> : {types}', [x, at], [x[first:][:2]]
    )
    numbers = "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
    rows = np.array([[start], [1]], dtype)
    properties = f"dimension_numbers = {numbers}, slice_sizes = array<i64: 1>"
    body = f'%r = "stablehlo.gather"(%0, %1) <{{{properties}}}> : {signature_of([x, rows], [x[:2]])}'
    check(body, [x, rows], [x[[0 if start < 0 else 5, 1]]])


def test_index_select_shares_batch_axes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    indices = np.array([[3, 0], [1, 1]], np.int32)
    expected = np.stack([x[number][:, indices[number]] for number in range(2)])
    body = '%r = "stablehlo.torch_index_select"(%0, %1) <{dim = 2 : i64, batch_dims = 1 : i64}> : '
    check(body + signature_of([x, indices], [expected]), [x, indices], [expected])


def test_slices_with_operands_as_bounds() -> None:
    x, start = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 2], np.int32)
    body = """%end = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
    %step = stablehlo.constant dense<1> : tensor<2xi32>
    %r = "stablehlo.real_dynamic_slice"(%0, %1, %end, %step) : """
    types = "(tensor<3x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xf32>"
    check(body + types, [x, start], [x[1:, 2:]])
    known = body.replace("%r", "%first = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n%r").replace("%1", "%first")
    known = known.replace("dense<1>", "dense<2>")
    check(known + types.replace("2x2xf32", "1x2xf32"), [x], [x[1::2, ::2]])
