"""Products with weights in blocks of codes in machine code, on every target that this machine can run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from execute import Case, check_all, compile_module, module_of, runnable_targets

from glow_mlir.constants.codes import pack_cells, pack_codes, unpack_cells, unpack_codes
from glow_mlir.dialects.glow_high.blockwise import WIDTHS, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.support.dtypes import named_dtype

RANDOM = np.random.default_rng(11)
WEIGHTS = (1, 2, 3, 4)
"""The operands of a product that are constants."""


def weights(
    shape: Sequence[int], bits: int, block: int, scale: str = "float32", zero_point: str = ""
) -> list[np.ndarray | None]:
    """Codes of the whole range, scales, and zero points, if they have a type."""
    *outer, depth = shape
    parameters = (*outer, -(-depth // block))
    codes = pack_codes(RANDOM.integers(0, 1 << bits, shape, np.uint8), bits)
    points = RANDOM.integers(0, 1 << bits, parameters).astype(named_dtype(zero_point or "uint8"))
    scales = RANDOM.uniform(0.1, 0.4, parameters) / (1 << bits)
    return [codes, scales.astype(named_dtype(scale)), points if zero_point else None]


def product(
    rows: Sequence[int], sizes: tuple[int, int], bits: int, block: int, *kinds: str, bias: bool = False, **more: int
) -> Case:
    """A product of rows and weights of some sizes, which are constants."""
    columns, depth = sizes
    left = RANDOM.normal(size=(*rows, depth)).astype(np.float32)
    added = RANDOM.normal(size=columns).astype(np.float32) if bias else None
    operands = [left, *weights((columns, depth), bits, block, *kinds), added]
    return Case(BlockwiseMatMulOp, *operands, constants=WEIGHTS, bits=bits, block=block, **more)


@pytest.mark.parametrize("bits", WIDTHS)
def test_codes_come_back_out_of_bytes_and_cells(bits: int) -> None:
    codes = RANDOM.integers(0, 1 << bits, (7, 64), np.uint8)
    packed = pack_codes(codes, bits)
    assert packed.shape == (7, 8 * bits)
    np.testing.assert_array_equal(unpack_codes(packed, bits), codes)
    np.testing.assert_array_equal(unpack_cells(pack_cells(packed, bits, 4), bits, 7), packed)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("bits", WIDTHS)
def test_products_are_those_of_the_numbers(target: str, bits: int) -> None:
    """Few rows and many, columns that fill no panel, a last block with fewer codes, all types of parameters."""
    cases = [
        product((1,), (130, 96), bits, 32),
        product((1,), (70, 80), bits, 16, "float16", "uint8", bias=True),
        product((13,), (33, 80), bits, 32, "float32", "uint8", bias=True),
        product((2, 3), (64, 64), bits, 64, "bfloat16", "float32"),
        product((2, 1, 5), (5, 144), bits, 128, "float32", "float16"),
    ]
    check_all(cases, target)


@pytest.mark.parametrize("target", runnable_targets())
def test_products_without_a_kernel_are_lowered(target: str) -> None:
    """Codes that are no constants, rows of codes that fill no cell, rows that are rounded; and numbers on their own."""
    cases = [product((3,), (9, 48), 4, 16, "float32", "uint8"), product((2,), (9, 72), 8, 32, left_bits=8)]
    cases[0].constants = ()
    cases += [product((3,), (9, 44), 2, 16), product((1,), (9, 66), 8, 32, bias=True)]
    for bits in WIDTHS:
        numbers = weights((2, 5, 48), bits, 32, "float16", "uint8")
        cases.append(Case(BlockwiseDequantizeOp, *numbers, bits=bits, block=32))
    check_all(cases, target)


def test_memory_holds_weights_as_narrow_as_they_are() -> None:
    """Constants are codes of 4 bits and a scale for each 32."""
    module, _ = module_of(product((1,), (256, 512), 4, 32))
    assert compile_module(module, "avx2").constants.nbytes == 256 * 512 // 2 + 256 * 512 // 32 * 4
