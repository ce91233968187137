"""Products of rows and weights that are both in blocks, in tile registers, which are emulated."""

from __future__ import annotations

import numpy as np
import pytest
from blockwise_cases import FORMS, TABLES, WEIGHTS, product, weights
from cut import check_parts
from execute import SYMBOLS, Case, check_all, compile_module, module_of
from machines import tile_targets
from tile_emulation import emulate_tiles

from glow_mlir.codegen.builder.amx import MAX_ROWS
from glow_mlir.dialects.glow_high.blockwise import LARGEST, BlockwiseMatMulIntegerOp, BlockwiseMatMulOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.support.symbols import Symbol, SymbolicSize

RANDOM = np.random.default_rng(12)
TARGETS = [target for target in tile_targets() if target.startswith("avx512")]


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tile registers are emulated."""
    emulate_tiles(monkeypatch)


def selected(case: Case, target: str) -> str:
    """The module with a kernel for each instruction."""
    module, _ = module_of(case)
    compilation = Compilation(module, target=target)
    compilation.run(until="selected")
    return str(compilation.module)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left_bits", LARGEST)
def test_products_are_those_of_the_numbers(target: str, left_bits: int) -> None:
    """Rows that fill no strip, batches, all widths, small blocks and large ones, rests of blocks, parameters."""
    cases = [
        product((32,), (130, 96), 4, 32, left_bits=left_bits),
        product((37,), (70, 80), 8, 16, "float16", "uint8", bias=True, left_bits=left_bits),
        product((3, 33), (33, 80), 2, 32, "float32", "uint8", left_bits=left_bits),
        product((40,), (17, 216), 4, 128, "float16", "", "float16", left_bits=left_bits),
        product((150,), (37, 336), 8, 256, "float32", "", "bfloat16", bias=True, left_bits=left_bits),
        product((32,), (9, 24), 4, 32, "float16", left_bits=left_bits),
        product((33,), (37, 96), 6, 32, "float16", left_bits=left_bits),
        product((32,), (37, 96), 5, 32, "float16", "", "float16", left_bits=left_bits),
        *(product((34,), (37, 96), 4, 32, "float16", left_bits=left_bits, table=table) for table in TABLES),
    ]
    check_all(cases, target)
    assert "tile_products = 1" in selected(cases[0], target)


@pytest.mark.parametrize("target", TARGETS)
def test_few_rows_are_multiplied_by_vectors(target: str) -> None:
    text = selected(product((31,), (130, 96), 4, 32, left_bits=8), target)
    assert "tile_products = 1" not in text
    assert 'kernel = "blockwise-matmul-integer"' in text


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left_bits", LARGEST)
def test_rows_in_strips_have_the_bits_of_rows_alone(target: str, left_bits: int) -> None:
    """For a number of rows that is known at run time only: no strip, some, and rows behind them."""
    forms = [(form, None) for form in (*FORMS[1:3], (6, 16, "float16"))]
    for form, table in [*forms, ((4, 16, "float16"), TABLES[0])]:
        together = product((70,), (40, 80), *form[:2], *form[2:], left_bits=left_bits, table=table)
        module, inputs = module_of(together)
        (expected,) = compile_module(module, target, verify_each=False).run(inputs).values()
        rows = SymbolicSize.of(Symbol("rows", 1, 70))
        case = Case(
            BlockwiseMatMulOp, *together.operands, constants=WEIGHTS, symbolic={0: (0, rows)}, **together.properties
        )
        module, inputs = module_of(case)
        program = compile_module(module, target, verify_each=False)
        for count in (70, 31, 32, 1):
            (found,) = program.run({**inputs, SYMBOLS: np.array([count])}).values()
            np.testing.assert_array_equal(found[:count].view(np.uint32), expected[:count].view(np.uint32))


@pytest.mark.parametrize("target", TARGETS)
def test_parts_change_no_bit(target: str) -> None:
    """Each worker unpacks weights into memory of its own."""
    for left_bits in LARGEST:
        module, inputs = module_of(product((2 * MAX_ROWS + 1,), (300, 96), 4, 32, "float32", left_bits=left_bits))
        assert check_parts(module, inputs, target=target) > 1


@pytest.mark.parametrize("target", TARGETS)
def test_largest_sums(target: str) -> None:
    """All values at the ends of their ranges."""
    rows, depth, block = 32, 256, 128
    left = np.full((rows, depth), 127, np.int8)
    left[::2] = -127
    low = np.full_like(left, 64)
    blocks = depth // block
    sums = (left.astype(np.int32) * 128 + low).reshape(rows, blocks, block).sum(-1, dtype=np.int32)
    codes, scales, *_ = weights((20, depth), 8, block)
    assert codes is not None
    codes[:10], codes[10:15] = 255, 0
    scale = np.full((rows, blocks), 0.01, np.float32)
    case = Case(
        BlockwiseMatMulIntegerOp,
        *(left, low, scale, sums, codes, scales, None, None, None),
        constants=(4, 5),
        bits=8,
        block=block,
    )
    check_all([case], target)
