"""Tile registers as tests emulate them: loads, stores and products give what the manual says, bit for bit."""

from __future__ import annotations

import emitted
import numpy as np
import pytest
from machines import target_named, tile_targets
from tile_emulation import compile_emulated

from glow_mlir.codegen.builder.amx import TileSize, configured, load_tile, multiply_tiles, store_tile, zero_tile
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value

RANDOM = np.random.default_rng(11)
ROWS, CELLS = 13, 11
SIZES = [TileSize(ROWS, 64), TileSize(ROWS, 4 * CELLS), TileSize(CELLS, 64)]


def product(instruction: str, target: str, monkeypatch: pytest.MonkeyPatch, *arrays: np.ndarray) -> np.ndarray:
    """
    The sums `[13, 16]` with the product of `[13, 11]` dot groups and `[11, 16]` dot groups added twice, as emulated.
    """
    monkeypatch.setattr(emitted, "compile_text", compile_emulated)

    def body(b: Builder, arguments: list[Value]) -> None:
        sums, left, right = arguments
        with configured(b, SIZES):
            for tile, address, step in ((0, sums, 64), (1, left, 4 * CELLS), (2, right, 64)):
                load_tile(b, tile, address, step)
            multiply_tiles(b, instruction, 0, 1, 2)
            multiply_tiles(b, instruction, 0, 1, 2)
            store_tile(b, 0, sums, 64)

    total, left, right = (np.ascontiguousarray(array) for array in arrays)
    found = total.copy()
    emitted.compiled(target_named(target), 3, 0, body)(found, left, right)
    return found


@pytest.mark.parametrize("target", tile_targets())
@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
def test_products_of_bytes(signs: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [np.int8 if sign == "s" else np.uint8 for sign in signs]
    left, right = (
        RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
        for kind, shape in zip(kinds, ((ROWS, 4 * CELLS), (CELLS, 16, 4)), strict=True)
    )
    total = RANDOM.integers(-(2**31), 2**31, (ROWS, 16)).astype(np.int32)
    depth = right.transpose(0, 2, 1).reshape(4 * CELLS, 16).astype(np.int64)
    expected = (total + 2 * (left.astype(np.int64) @ depth)).astype(np.int32)
    np.testing.assert_array_equal(product(f"tdpb{signs}d", target, monkeypatch, total, left, right), expected)


@pytest.mark.parametrize("target", tile_targets())
def test_products_of_bf16(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products at even and at odd places are summed by multiply-adds each, and both sums are added together."""
    numbers = [
        (RANDOM.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        for shape in ((ROWS, CELLS, 2), (CELLS, 16, 2))
    ]
    numbers[0][0, 0] = 1, 0x8001  # Too small to be normal: they count as zero.
    left, right = ((number.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for number in numbers)
    left[0, 0] = 0
    total = RANDOM.standard_normal((ROWS, 16)).astype(np.float32)
    halves = np.zeros((2, ROWS, 16), np.float32)
    for dot_group in range(CELLS):
        for place in range(2):
            # Exact in f64, so that it is rounded once.
            exact = halves[place] + left[:, dot_group, place, np.newaxis] * right[dot_group, :, place]
            halves[place] = exact.astype(np.float32)
    expected = total
    for _ in range(2):
        expected = expected + (halves[0] + halves[1])
    found = product("tdpbf16ps", target, monkeypatch, total, *numbers)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_registers_begin_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitted, "compile_text", compile_emulated)

    def body(b: Builder, arguments: list[Value]) -> None:
        with configured(b, SIZES):
            load_tile(b, 0, arguments[0], 64)
            zero_tile(b, 0)
            store_tile(b, 0, arguments[0], 64)

    found = np.full((16, 16), 7, np.int32)
    emitted.compiled(target_named(tile_targets()[-1]), 1, 0, body)(found)
    assert not found[:ROWS].any()
    assert (found[ROWS:] == 7).all()
