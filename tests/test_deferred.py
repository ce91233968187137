"""Deferred arrays: each form against numpy, in whole and in parts."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glow_mlir.constants.deferred
from glow_mlir.constants.deferred import Bytes, Deferred, FileMap, Joined, Packed, Reshaped, Scaled, Stored, Transposed
from glow_mlir.constants.layouts import (
    Interleave,
    depthwise_filters,
    filter_panels,
    gate_blocks,
    matrix_panels,
    strassen_panels,
    winograd_panels,
)
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.constants.winograd import TileForm
from glow_mlir.rewriting.elementwise_constants import Computed


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small arrays have many parts."""
    monkeypatch.setattr(glow_mlir.constants.deferred, "BLOCK_BYTES", 64)


class Opaque(Deferred):
    """An array that nothing is known of, so that nothing is simplified."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape, self.dtype, self.content = array.shape, array.dtype, array

    @property
    def recipe(self) -> str:
        return "opaque"

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        return self.content[(slice(None),) * axis + (slice(begin, end),)]

    def separable(self, axis: int) -> bool:
        return axis == 0


def random_array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def check(deferred: Deferred, expected: np.ndarray) -> None:
    """Check the whole, and parts along every axis."""
    assert deferred.shape == expected.shape
    assert deferred.dtype == expected.dtype
    np.testing.assert_array_equal(deferred.array(), expected)
    for axis, size in enumerate(expected.shape):
        for begin, end in ((0, size), (size // 2, size), (0, size // 2 + 1)):
            part = deferred.part(axis, begin, min(end, size))
            np.testing.assert_array_equal(part, np.take(expected, range(begin, min(end, size)), axis))


@pytest.mark.parametrize("kind", [Stored, Opaque])
@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 0, 1), (0, 2, 1)])
def test_transposed(kind: type, permutation: tuple[int, ...]) -> None:
    array = random_array(3, 5, 7)
    check(kind(array).transposed(permutation), array.transpose(permutation))


@pytest.mark.parametrize("kind", [Stored, Opaque])
@pytest.mark.parametrize("shape", [(4, 6, 10), (24, 10), (4, 60), (4, 3, 2, 10), (10, 24), (240,), (4, 1, 6, 10, 1)])
def test_reshaped(kind: type, shape: tuple[int, ...]) -> None:
    array = random_array(4, 6, 10)
    check(kind(array).reshaped(shape), array.reshape(shape))


@given(st.permutations(range(4)), st.sampled_from([(6, 20), (2, 60), (24, 5), (120,), (2, 3, 4, 5), (3, 40), (1, 120)]))
def test_reshapes_of_transposes(permutation: list[int], shape: tuple[int, ...]) -> None:
    array = random_array(2, 3, 4, 5)
    for source in (Stored(array), Opaque(array)):
        check(source.transposed(permutation).reshaped(shape), array.transpose(permutation).reshape(shape))
    check(Reshaped(Transposed(Stored(array), tuple(permutation)), shape), array.transpose(permutation).reshape(shape))


def test_scaled_rounds_once() -> None:
    array, rows, columns = random_array(6, 9), np.random.default_rng(1).normal(size=(6, 1)), np.ones((1, 9)) / 3
    both = Scaled(Stored(array), [rows, columns], np.dtype(np.float32))
    check(both, (array.astype(np.float64) * rows * columns).astype(np.float32))
    assert both.largest() == np.abs(both.array()).max()


@pytest.mark.parametrize("factor", [(6, 1, 1), (1, 1, 5), (6, 1, 5), (1, 1, 1)])
@pytest.mark.parametrize("kind", [Stored, Opaque])
def test_largest_magnitude(kind: type, factor: tuple[int, ...]) -> None:
    array = random_array(6, 4, 5)
    scaled = Scaled(kind(array), [np.random.default_rng(1).normal(size=factor)], np.dtype(np.float32))
    assert scaled.largest() == np.abs(scaled.array()).max()
    array[1, 2, 3] = np.nan
    assert np.isnan(Scaled(kind(array), [np.ones(factor)], np.dtype(np.float32)).largest())


def test_joined() -> None:
    arrays = [random_array(3, size) for size in (4, 1, 6)]
    for axis, parts in ((1, arrays), (0, [array.T for array in arrays])):
        check(Joined([Stored(part) for part in parts], axis), np.concatenate(parts, axis=axis))


PACKINGS: dict[str, tuple[np.ndarray, Callable[[tuple[int, ...]], PackedLayout]]] = {
    "filters": (random_array(21, 3, 3, 4), lambda shape: filter_panels(shape, 8)),
    "grouped": (random_array(20, 3, 3, 4), lambda shape: filter_panels(shape, 4, groups=4)),
    "panels": (random_array(6, 21), lambda shape: matrix_panels(shape, 8)),
    "interleaved": (random_array(6, 21), lambda shape: matrix_panels(shape, 8, Interleave(4))),
    "winograd": (random_array(13, 3, 3, 4), lambda shape: winograd_panels(shape, 8, TileForm(4, 4))),
    "depthwise": (random_array(13, 3, 3, 1), depthwise_filters),
    "gates": (random_array(13, 52), lambda shape: gate_blocks(shape, 2, 4)),
    "strassen": (random_array(6, 32), lambda shape: strassen_panels(shape, 4)),
    "strassen_transposed": (random_array(32, 6), lambda shape: strassen_panels(shape, 4, transposed=True)),
}


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("kind", [Stored, Opaque])
def test_packed(name: str, kind: type[Stored | Opaque]) -> None:
    array, layout_of = PACKINGS[name]
    layout = layout_of(array.shape)
    check(Packed(kind(array), layout, array.dtype), layout.pack(array, array.dtype))


@pytest.mark.parametrize("name", PACKINGS)
def test_packed_over_what_was_there(name: str) -> None:
    array, layout_of = PACKINGS[name]
    layout = layout_of(array.shape)
    packed = layout.pack(array, array.dtype)
    around = np.full([size + 2 for size in packed.shape], np.nan, packed.dtype)
    place = (slice(1, -1),) * packed.ndim
    layout.write(array, around[place])
    np.testing.assert_array_equal(around[place], packed)
    assert np.isnan(around).sum() == around.size - packed.size


def test_digests_tell_what_differs() -> None:
    array = random_array(6, 6)
    source = Stored(array)
    one = np.ones((6, 1))
    made = [
        source,
        source.transposed((1, 0)),
        source.reshaped((36,)),
        source.transposed((1, 0)).reshaped((36,)),
        Scaled(source, [one], source.dtype),
        Scaled(source, [one.T], source.dtype),
        Scaled(source, [one * 2], source.dtype),
        Scaled(source, [one * 2], np.dtype(np.float64)),
        Joined([source, source], 0),
        Joined([source, source], 1),
        Joined([source.transposed((1, 0)), source], 1),
        Packed(source, matrix_panels(source.shape, 4), source.dtype),
        Packed(source, matrix_panels(source.shape, 2), source.dtype),
    ]
    assert len({item.digest for item in made}) == len(made)
    assert Stored(array.copy()).digest == source.digest
    assert Stored(array.copy()).transposed((1, 0)).digest == source.transposed((1, 0)).digest


def test_forgotten_files_are_read_again_and_memory_stays(tmp_path: Path) -> None:
    array = random_array(64, 64)
    (tmp_path / "file").write_bytes(array.tobytes())
    with (tmp_path / "file").open("rb") as file:
        mapped = Stored(np.frombuffer(FileMap.of(file), np.float32).reshape(64, 64))
    anonymous = mmap.mmap(-1, array.nbytes)
    anonymous.write(array.tobytes())
    for stored in (mapped, Stored(np.frombuffer(anonymous, np.float32).reshape(64, 64))):
        stored.transposed((1, 0)).forget()
        np.testing.assert_array_equal(stored.array(), array)


def test_bytes_of_elements() -> None:
    array = random_array(5, 24)
    for source in (Stored(array), Opaque(array), Stored(array.T).transposed((1, 0))):
        check(Bytes(source), array.view(np.uint8))


def test_widened_arrays_know_the_narrow_one() -> None:
    """Behind all that moves elements; arrays that are joined of several types stay wide."""
    array = random_array(4, 6).astype(np.float16)
    widened = Computed("widen", lambda arrays: arrays[0].astype(np.float32), Opaque(array), 0, (), np.dtype(np.float32))
    assert widened.unwidened is widened
    widened = Computed(widened.name, widened.function, widened.source, 0, (), widened.dtype, keeps_numbers=True)
    check(widened.transposed((1, 0)).unwidened, array.T)
    check(widened.reshaped((8, 3)).unwidened, array.reshape(8, 3))
    check(Joined([widened, widened], 0).unwidened, np.concatenate([array, array]))
    mixed = Joined([widened, Opaque(array.astype(np.float32))], 0)
    assert mixed.unwidened is mixed
