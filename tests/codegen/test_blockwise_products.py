"""Products with weights in blocks of codes in machine code, on every target that this machine can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from assembly import assembly_of, innermost_loops
from blockwise_cases import FORMS, TABLES, WEIGHTS, as_bytes, in_levels, product, weights
from breadth import examples
from cut import check_parts
from emulators import machine_for
from execute import Case, assert_same, check_all, compile_module, module_of, runnable_targets, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from glow_mlir.constants.sub_byte_values import pack_dot_groups, pack_sub_bytes, unpack_dot_groups, unpack_sub_bytes
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.blockwise import (
    HALF_BITS,
    LARGEST,
    WIDTHS,
    BlockwiseDequantizeOp,
    BlockwiseMatMulIntegerOp,
    BlockwiseMatMulOp,
)
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import FLOAT4, named_dtype, packed_bits

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("bits", [*WIDTHS, HALF_BITS])
def test_codes_come_back_out_of_bytes_and_cells(bits: int) -> None:
    codes = RANDOM.integers(0, 1 << bits, (7, 64)).astype(np.uint16 if bits == HALF_BITS else np.uint8)
    packed = pack_sub_bytes(codes, bits)
    assert packed.shape == (7, 8 * bits)
    np.testing.assert_array_equal(unpack_sub_bytes(packed, bits), codes)
    np.testing.assert_array_equal(unpack_dot_groups(pack_dot_groups(packed, bits, 4), bits, 7), packed)


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
        product((1,), (70, 80), bits, 16, "float16", "", "float16", bias=True),
        product((2, 7), (37, 144), bits, 64, "float32", "", "bfloat16"),
    ]
    check_all(cases, target)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("left_bits", LARGEST)
def test_rounded_rows_are_multiplied_as_integers(target: str, left_bits: int) -> None:
    """All widths of weights, few rows and many, zero points, small blocks and large ones, a short last block."""
    cases = [
        product((1,), (130, 96), 4, 32, left_bits=left_bits),
        product((1,), (70, 80), 8, 16, "float16", "uint8", bias=True, left_bits=left_bits),
        product((13,), (33, 80), 2, 32, "float32", "uint8", bias=True, left_bits=left_bits),
        product((2, 3), (64, 64), 4, 64, "bfloat16", "float32", left_bits=left_bits),
        product((2, 1, 5), (5, 144), 8, 128, left_bits=left_bits),
        product((3,), (9, 328), 4, 256, "float16", left_bits=left_bits),
        product((1,), (70, 80), 4, 16, "float16", "", "float16", bias=True, left_bits=left_bits),
        product((9,), (37, 336), 8, 64, "float32", "", "bfloat16", left_bits=left_bits),
        product((2,), (9, 1032), 8, 1024, left_bits=left_bits),
    ]
    check_all(cases, target)
    module, _ = module_of(cases[0])
    compilation = Compilation(module, target=target)
    compilation.run(until="selected")
    assert 'kernel = "blockwise-matmul-integer"' in str(compilation.module)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("left_bits", [0, *LARGEST])
def test_codes_may_stand_for_entries_of_tables(target: str, left_bits: int) -> None:
    """By kernels, as bytes where no instruction looks them up, and lowered: codes of a call, and other sizes."""
    cases = [
        product((rows,), (70, 80), 4, 16, "float16", bias=True, left_bits=left_bits, table=table)
        for rows, table in zip((1, 13, 3), TABLES, strict=True)
    ]
    check_all(cases, target)
    module, _ = module_of(*cases)
    compilation = Compilation(module, target=target)
    compilation.run(until="selected")
    text = str(compilation.module)
    assert text.count('kernel = "blockwise-matmul') == len(cases)
    assert text.count("bits = 8}") == (len(cases) if target == "scalar" else 0)
    others = [product((2,), (9, 36), 4, 16, left_bits=left_bits, table=TABLES[0]), cases[2]]
    others[1].constants = ()
    codes, scales, *_ = weights((2, 5, 48), 4, 32)
    others.append(Case(BlockwiseDequantizeOp, codes, scales, None, None, bits=4, block=32, table=TABLES[1]))
    check_all(others, target, 1e-4)


@pytest.mark.parametrize("target", [*runnable_targets(), "host"])
@pytest.mark.parametrize("left_bits", LARGEST)
def test_narrow_codes_have_the_bits_of_bytes(target: str, left_bits: int) -> None:
    """Sums of integers are exact, whatever weights are stored as."""
    cases = [product((5,), (70, 96), bits, 32, "float16", left_bits=left_bits) for bits in WIDTHS]
    cases += [product((5,), (70, 96), 4, 32, "float16", left_bits=left_bits, table=table) for table in TABLES]
    module, inputs = module_of(*(each for case in cases for each in (case, as_bytes(case))))
    found = [array.view(np.uint32) for array in compile_module(module, target, verify_each=False).run(inputs).values()]
    for narrow, wide in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(narrow, wide)


@pytest.mark.extra
@pytest.mark.parametrize("target", ["neon", "neon-dotprod", "cortex-m4"])
def test_tables_and_planes_on_other_processors(target: str) -> None:
    machine = machine_for(target)
    cases = [product((3,), (9, 64), bits, 32, "float16", left_bits=left) for bits in (5, 6) for left in (0, 15)]
    cases += [product((3,), (9, 64), 4, 32, left_bits=left, table=TABLES[0]) for left in (0, 8, 15)]
    module, inputs = module_of(*cases)
    wanted = run_function(module.clone(), inputs)
    ran = machine.run(Compilation(module, target=target).artifact(), inputs)
    assert ran.status == 0
    assert_same(wanted, ran.outputs)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("left_bits", LARGEST)
def test_largest_integers_do_not_overflow(target: str, bits: int, left_bits: int) -> None:
    """All values of a row, and all of a column, at the same end of their range; and rows that are not finite."""
    block = 64
    case = product((5,), (40, 4 * block), bits, block, "float32", "uint8", left_bits=left_bits)
    left, codes, points = (np.array(case.operands[position]) for position in (0, 1, 3))
    left[0], left[1], left[2, ::2] = 3.0, -3.0, 1e-45
    left[2, 1::2], left[3], left[4, 7] = 0.0, 0.0, np.inf
    codes[:20], codes[20:30] = 255, 0
    if bits == 4:
        tabled = Case(
            BlockwiseMatMulOp,
            left,
            codes,
            case.operands[2],
            None,
            None,
            None,
            constants=WEIGHTS,
            **{**case.properties, "table": TABLES[0]},
        )
        check_all([tabled], target)
    points[:10], points[20:25] = 0, (1 << bits) - 1
    case.operands = [left, codes, case.operands[2], points, None, None]
    check_all([case], target)
    case.operands = [left, codes, case.operands[2], None, -points.astype(np.float32), None]
    check_all([case], target)


@pytest.mark.parametrize("target", [*runnable_targets(), "host"])
@pytest.mark.parametrize("left_bits", [0, *LARGEST])
def test_rows_do_not_see_each_other(target: str, left_bits: int) -> None:
    """A row has the same bits whichever rows are beside it."""
    cases: list[Case] = []
    for form in FORMS:
        together = product((512,), (40, 80), *form[:2], *form[2:], left_bits=left_bits)
        left, *others = together.operands
        for rows in (512, 64, 7, 3, 2, 1):
            operands = np.array(left)[:rows], *others
            cases.append(Case(BlockwiseMatMulOp, *operands, constants=WEIGHTS, **together.properties))
    module, inputs = module_of(*cases)
    found = [array.view(np.uint32) for array in compile_module(module, target, verify_each=False).run(inputs).values()]
    for all_rows, *fewer in zip(*[iter(found)] * 6, strict=True):
        for rows in fewer:
            np.testing.assert_array_equal(rows, all_rows[: len(rows)])


def float_product(
    name: str, rows: Sequence[int], sizes: tuple[int, int], block: int, scale: str = "float32", **more: int
) -> Case:
    """A product of rows and weights that are codes of floats, one of which is NaN where there is such a code."""
    columns, depth = sizes
    numbers = RANDOM.normal(size=sizes).astype(named_dtype(name))
    numbers[0, 0] = np.nan
    bits = packed_bits(name) or 8 * numbers.itemsize
    codes = pack_sub_bytes(numbers.view(f"u{numbers.itemsize}"), bits)
    scales = RANDOM.uniform(0.1, 0.4, (columns, -(-depth // block))).astype(named_dtype(scale))
    left = RANDOM.normal(size=(*rows, depth)).astype(np.float32)
    widths: dict[str, Any] = {"bits": bits, "block": block, "element": ELEMENT_TYPES[name], **more}
    return Case(BlockwiseMatMulOp, left, codes, scales, None, None, None, constants=WEIGHTS, **widths)


@pytest.mark.parametrize("target", runnable_targets())
def test_products_with_codes_of_floats(target: str) -> None:
    """By kernels, and lowered where rows are rounded or codes fill no dot groups."""
    cases = [
        float_product(FLOAT4, (1,), (130, 96), 32),
        float_product(FLOAT4, (5,), (9, 80), 16, "float16"),
        float_product("float8_e4m3fn", (1,), (70, 80), 32),
        float_product("float8_e5m2fnuz", (13,), (33, 64), 64, "bfloat16"),
        float_product("float8_e5m2", (2,), (5, 36), 16, left_bits=8),
        float_product("float16", (1,), (130, 98), 128),
        float_product("bfloat16", (11,), (37, 64), 32, "float16"),
        float_product("bfloat16", (2,), (5, 35), 16),
        float_product(FLOAT4, (2,), (5, 36), 16),
    ]
    check_all(cases, target)


@pytest.mark.parametrize("target", runnable_targets())
def test_products_without_a_kernel_are_lowered(target: str) -> None:
    """
    Codes that are no constants, rows of codes that fill no dot group, rows that are rounded; and numbers on their own.
    """
    cases = [product((3,), (9, 48), 4, 16, "float32", "uint8"), product((3,), (9, 48), 4, 16, "float32", "", "float16")]
    for case in cases:
        case.constants = ()
    cases += [product((2,), (9, 72), 8, 32, left_bits=8), product((2,), (9, 44), 8, 32, "float32", "", "float32")]
    cases += [product((3,), (9, 44), 2, 16), product((1,), (9, 66), 8, 32, bias=True)]
    cases += [product((3,), (9, 40), 5, 32), product((3,), (9, 64), 5, 16), product((1,), (9, 72), 6, 32, bias=True)]
    for bits in WIDTHS:
        for kinds in (("uint8", ""), ("", "float16")):
            numbers = weights((2, 5, 48), bits, 32, "float16", *kinds)
            cases.append(Case(BlockwiseDequantizeOp, *numbers, bits=bits, block=32))
    check_all(cases, target)


@pytest.mark.parametrize("target", runnable_targets())
def test_operands_of_equal_elements_may_be_splats(target: str) -> None:
    """As the compiler makes of each constant of one element: the scale of one column in one block."""
    text = """
      glow_high.constant @c : tensor<1x16xui8>
        {value = dense<[[1, 2, 3, 4, 250, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]]> : tensor<1x16xui8>}
      glow_high.func @main(%x: tensor<3x32xf32>) -> (tensor<3x1xf32>, tensor<3x5xf32>) {
        %c = glow_high.get @c : tensor<1x16xui8>
        %s = glow_high.splat {value = 0.125 : f32} : tensor<1x1xf32>
        %z = glow_high.splat {value = 3 : ui8} : tensor<1x1xui8>
        %0 = glow_high.blockwise_matmul %x, %c, %s, %z {bits = 4, block = 32} : tensor<3x1xf32>
        %d = glow_high.splat {value = 201 : ui8} : tensor<5x16xui8>
        %t = glow_high.splat {value = 0.5 : f32} : tensor<5x2xf32>
        %1 = glow_high.blockwise_matmul %x, %d, %t {bits = 4, block = 16} : tensor<3x5xf32>
        glow_high.return %0, %1
      }"""
    module = parse_module(text, new_context(), "product.mlir")
    inputs = {"main.x": sample((3, 32))}
    expected = run_function(module.clone(), inputs)
    compilation = Compilation(module.clone(), target=target)
    compilation.run(until="selected")
    assert str(compilation.module).count("glow_low.blockwise_matmul") == 2
    assert_same(expected, compile_module(module, target).run(inputs))


@pytest.mark.parametrize("bits", WIDTHS)
def test_no_codes_are_no_numbers(bits: int) -> None:
    """No rows of weights, and no rows to multiply by them."""
    empty = [product((2,), (0, 32), bits, 16), product((0,), (9, 32), bits, 16, left_bits=8)]
    empty.append(Case(BlockwiseDequantizeOp, *weights((0, 32), bits, 16), bits=bits, block=16))
    check_all(empty)


def test_memory_holds_weights_as_narrow_as_they_are() -> None:
    """Constants are codes of 4 bits and a scale for each 32."""
    module, _ = module_of(product((1,), (256, 512), 4, 32))
    assert compile_module(module, "avx2").constants.nbytes == 256 * 512 // 2 + 256 * 512 // 32 * 4


@settings(max_examples=examples(5), deadline=None)
@given(data=st.data())
def test_products_of_any_sizes_are_those_of_the_numbers(data: st.DataObject) -> None:
    cases: list[Case] = []
    for _ in range(3):
        bits, block = data.draw(st.sampled_from(WIDTHS)), data.draw(st.sampled_from((16, 32, 64)))
        depth = data.draw(st.integers(1, 12)) * max(8, 32 // bits)
        sizes = data.draw(st.integers(1, 150)), depth
        scale = data.draw(st.sampled_from(("float32", "float16")))
        kinds = scale, *data.draw(st.sampled_from((("", ""), ("uint8", ""), ("float32", ""), ("", "bfloat16"))))
        rows = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)))
        more = {"bias": data.draw(st.booleans()), "left_bits": data.draw(st.sampled_from((0, *LARGEST)))}
        cases.append(product(rows, sizes, bits, block, *kinds, **more))
    check_all(cases)


@pytest.mark.parametrize("target", runnable_targets())
def test_what_follows_a_product_is_applied_to_its_sums(target: str) -> None:
    """An epilogue with a further operand, on columns that fill no vector."""
    text = """
      glow_high.constant @c : tensor<37x16xui8> {value = dense<200> : tensor<37x16xui8>}
      glow_high.constant @s : tensor<37x2xf32> {value = dense<0.125> : tensor<37x2xf32>}
      glow_high.func @main(%x: tensor<3x32xf32>, %r: tensor<3x37xf32>) -> tensor<3x37xf32> {
        %c = glow_high.get @c : tensor<37x16xui8>
        %s = glow_high.get @s : tensor<37x2xf32>
        %0 = glow_high.blockwise_matmul %x, %c, %s {bits = 4, block = 16} : tensor<3x37xf32>
        %1 = glow_high.add %0, %r : tensor<3x37xf32>
        %2 = glow_high.relu %1 : tensor<3x37xf32>
        glow_high.return %2
      }"""
    module = parse_module(text, new_context(), "product.mlir")
    inputs = {"main.x": sample((3, 32)), "main.r": sample((3, 37))}
    expected = run_function(module.clone(), inputs)
    compilation = Compilation(module.clone(), target=target)
    compilation.run(until="selected")
    assert "epilogue(" in str(compilation.module)
    assert_same(expected, compile_module(module, target).run(inputs))


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize(("target", "width"), [("neon", 128), ("avx2", 256), ("avx512", 512)])
def test_loops_over_cells_compute_in_whole_vectors(target: str, width: int, rows: int) -> None:
    """Codes of one column become numbers, and meet all rows, without leaving vectors."""
    for bits in WIDTHS:
        text = assembly_of(product((rows,), (64, 64), bits, 32), target)
        loops = [loop for loop in innermost_loops(text) if loop.function.startswith("blockwise") and loop.arithmetic]
        assert loops
        for loop in loops:
            assert loop.bits == width
            assert not loop.scalar


@pytest.mark.parametrize("target", runnable_targets())
def test_parts_change_no_bit(target: str) -> None:
    for left_bits in (0, *LARGEST):
        for kinds in (("uint8",), ("", "float16")):
            module, inputs = module_of(product((2,), (300, 96), 4, 32, "float32", *kinds, left_bits=left_bits))
            assert check_parts(module, inputs, target=target) > 1


@pytest.mark.parametrize("constants", [(), (1,), (2, 3, 4)], ids=["none", "codes", "parameters"])
def test_weights_of_a_call(constants: Sequence[int]) -> None:
    """Codes and parameters of blocks that are inputs are dequantized in front of a product, rounded rows too."""
    for left_bits in (0, *LARGEST):
        for kinds in (("uint8",), ("", "float32")):
            left = RANDOM.normal(size=(3, 48)).astype(np.float32)
            operands = [left, *weights((5, 48), 4, 32, "float32", *kinds), None]
            case = Case(BlockwiseMatMulOp, *operands, constants=constants, bits=4, block=32, left_bits=left_bits)
            check_all([case], "host", 1e-4)


@pytest.mark.parametrize("target", runnable_targets())
def test_sums_of_a_call_take_zero_points_and_minima(target: str) -> None:
    """Lowered products of integers take the sums that they are given, whatever the values of the row are."""
    left = RANDOM.integers(-127, 128, (3, 48)).astype(np.int8)
    rows = [left, None, RANDOM.uniform(0.1, 0.2, (3, 2)).astype(np.float32), np.full((3, 2), 77, np.int32)]
    for kinds in (("",), ("uint8",), ("", "float16")):
        operands = [*rows, *weights((5, 48), 4, 32, "float32", *kinds), None]
        check_all([Case(BlockwiseMatMulIntegerOp, *operands, bits=4, block=32)], target, 1e-4)


@pytest.mark.parametrize("target", runnable_targets())
def test_numbers_with_minima_are_rounded_twice(target: str) -> None:
    """scale · q becomes f32, and then the sum: with scales of f32, no product is exact."""
    for bits in WIDTHS:
        quantized = weights((9, 96), bits, 32, "float32", "", "float32")
        module, inputs = module_of(Case(BlockwiseDequantizeOp, *quantized, bits=bits, block=32))
        (found,) = compile_module(module, target).run(inputs).values()
        codes, scales, minima = (np.array(quantized[position]) for position in (0, 1, 3))
        numbers = unpack_sub_bytes(codes, bits).astype(np.float32) * scales.repeat(32, -1) + minima.repeat(32, -1)
        np.testing.assert_array_equal(found.view(np.uint32), numbers.view(np.uint32))


@pytest.mark.parametrize("target", [*runnable_targets(), "host"])
@pytest.mark.parametrize("left_bits", [0, *LARGEST])
def test_scales_and_minima_of_two_levels(target: str, left_bits: int) -> None:
    """As in GGUF's K-quants: bytes, signed or not, and a factor for some neighbours, as constants and as inputs."""
    cases = [
        in_levels(product((1,), (40, 256), 4, 32, "float32", "", "float32", left_bits=left_bits), 8),
        in_levels(product((35,), (37, 96), 8, 16, "float32", "uint8", bias=True, left_bits=left_bits), 3, signed=True),
    ]
    check_all(cases, target)
    module, _ = module_of(cases[1])
    compilation = Compilation(module, target=target)
    compilation.run(until="selected")
    assert 'kernel = "blockwise-matmul' in str(compilation.module)
    cases[0].constants = ()
    check_all(cases[:1], target, 1e-4)


def test_numbers_of_two_levels_have_the_bits_of_the_file() -> None:
    """As gguf-py computes them: all steps in f32."""
    case = in_levels(product((1,), (9, 256), 4, 32, "float32", "", "float32"), 8)
    codes, scales, minima, factors, minimum_factors = (np.array(case.operands[place]) for place in (1, 2, 4, 6, 7))
    scale, minimum = (
        (factor.astype(np.float32) * level.astype(np.float32))[..., np.newaxis]
        for factor, level in ((factors, scales), (minimum_factors, minima))
    )
    numbers = scale * unpack_sub_bytes(codes, 4).reshape(9, 8, 32).astype(np.float32) + minimum
    operands = codes, scales, None, minima, factors, minimum_factors
    module, inputs = module_of(Case(BlockwiseDequantizeOp, *operands, bits=4, block=32))
    (found,) = compile_module(module, "host").run(inputs).values()
    np.testing.assert_array_equal(found.view(np.uint32), numbers.reshape(9, 256).view(np.uint32))
