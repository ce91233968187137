"""Products with weights in blocks, for tests of their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from execute import Case

from glow_mlir.constants.sub_byte_values import pack_sub_bytes, unpack_sub_bytes
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.frontends.gguf.block_types import DOUBLED_E2M1, NONLINEAR
from glow_mlir.support.dtypes import named_dtype

RANDOM = np.random.default_rng(11)
WEIGHTS = (1, 2, 3, 4, 5)
"""The operands of a product that are constants."""

TABLES = (NONLINEAR.tolist(), DOUBLED_E2M1.tolist(), [*range(100, 116)])
"""Tables of codes, of which one has no number below 0."""


def weights(
    shape: Sequence[int], bits: int, block: int, scale: str = "float32", zero_point: str = "", minimum: str = ""
) -> list[np.ndarray | None]:
    """Codes of the whole range, scales, and zero points and minima, if they have a type."""
    *outer, depth = shape
    parameters = (*outer, -(-depth // block))
    codes = pack_sub_bytes(RANDOM.integers(0, 1 << bits, shape, np.uint8), bits)
    points = RANDOM.integers(0, 1 << bits, parameters).astype(named_dtype(zero_point or "uint8"))
    scales = RANDOM.uniform(0.1, 0.4, parameters) / (1 << bits)
    minima = (RANDOM.uniform(-1, 0.5, parameters) * scales * (1 << bits)).astype(named_dtype(minimum or "float32"))
    return [codes, scales.astype(named_dtype(scale)), points if zero_point else None, minima if minimum else None]


def product(
    rows: Sequence[int], sizes: tuple[int, int], bits: int, block: int, *kinds: str, bias: bool = False, **more: Any
) -> Case:
    """A product of rows and weights of some sizes, which are constants."""
    columns, depth = sizes
    left = RANDOM.normal(size=(*rows, depth)).astype(np.float32)
    added = RANDOM.normal(size=columns).astype(np.float32) if bias else None
    operands = [left, *weights((columns, depth), bits, block, *kinds), added]
    return Case(BlockwiseMatMulOp, *operands, constants=WEIGHTS, bits=bits, block=block, **more)


def as_bytes(case: Case) -> Case:
    """The product of the same numbers as codes of 8 bits without a table."""
    bits, table = case.properties["bits"], case.properties.get("table")
    codes = unpack_sub_bytes(np.array(case.operands[1]), bits)
    entries = np.arange(1 << bits) - (1 << bits - 1) if table is None else np.array(table)
    operands = case.operands[0], (entries + 128).astype(np.uint8)[codes], *case.operands[2:]
    return Case(BlockwiseMatMulOp, *operands, constants=WEIGHTS, **{**case.properties, "bits": 8, "table": None})


def in_levels(case: Case, span: int, factor: str = "float16", signed: bool = False) -> Case:
    """A product whose scales, and minima if there are any, are bytes, of which `span` neighbours share a factor."""
    left, codes, scales, points, minima, bias = case.operands
    shape = np.shape(np.array(scales))
    low, high, kind = (-128, 128, np.int8) if signed else (0, 256, np.uint8)
    largest = 4e-3 / (1 << case.properties["bits"])
    levels: list[np.ndarray | None] = []
    factors: list[np.ndarray | None] = []
    for given in (scales, minima):
        found = RANDOM.uniform(-largest, largest, (shape[0], shape[1] // span)).astype(named_dtype(factor))
        levels.append(None if given is None else RANDOM.integers(low, high, shape, kind))
        factors.append(None if given is None else found)
    operands = left, codes, levels[0], points, levels[1], bias, *factors
    return Case(BlockwiseMatMulOp, *operands, constants=(*WEIGHTS, 6, 7), **case.properties)


FORMS = [
    (4, 32, "float16"),
    (8, 16, "float32", "uint8"),
    (4, 16, "float16", "", "float16"),
    (2, 32, "bfloat16", "float32"),
]
"""Bits, block and types of parameters of weights; some have a last block that is short."""
