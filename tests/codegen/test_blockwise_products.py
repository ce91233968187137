"""Products with weights in blocks of codes in machine code, on every target that this machine can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from assembly import assembly_of, innermost_loops
from breadth import examples
from cut import check_parts
from execute import Case, assert_same, check_all, compile_module, module_of, runnable_targets, sample
from hypothesis import given, settings
from hypothesis import strategies as st

from glow_mlir.constants.sub_byte_values import pack_dot_groups, pack_sub_bytes, unpack_dot_groups, unpack_sub_bytes
from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.glow_high.blockwise import WIDTHS, BlockwiseDequantizeOp, BlockwiseMatMulOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.dtypes import FLOAT4, named_dtype, packed_bits

RANDOM = np.random.default_rng(11)
WEIGHTS = (1, 2, 3, 4)
"""The operands of a product that are constants."""


def weights(
    shape: Sequence[int], bits: int, block: int, scale: str = "float32", zero_point: str = ""
) -> list[np.ndarray | None]:
    """Codes of the whole range, scales, and zero points, if they have a type."""
    *outer, depth = shape
    parameters = (*outer, -(-depth // block))
    codes = pack_sub_bytes(RANDOM.integers(0, 1 << bits, shape, np.uint8), bits)
    points = RANDOM.integers(0, 1 << bits, parameters).astype(named_dtype(zero_point or "uint8"))
    scales = RANDOM.uniform(0.1, 0.4, parameters) / (1 << bits)
    return [codes, scales.astype(named_dtype(scale)), points if zero_point else None]


def product(
    rows: Sequence[int], sizes: tuple[int, int], bits: int, block: int, *kinds: str, bias: bool = False, **more: Any
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
    ]
    check_all(cases, target)


def float_product(
    name: str, rows: Sequence[int], sizes: tuple[int, int], block: int, scale: str = "float32", **more: int
) -> Case:
    """A product of rows and weights that are codes of floats, one of which is NaN where there is such a code."""
    columns, depth = sizes
    numbers = RANDOM.normal(size=sizes).astype(named_dtype(name))
    numbers[0, 0] = np.nan
    bits = packed_bits(name) or 8
    codes = pack_sub_bytes(numbers.view(np.uint8), bits)
    scales = RANDOM.uniform(0.1, 0.4, (columns, -(-depth // block))).astype(named_dtype(scale))
    left = RANDOM.normal(size=(*rows, depth)).astype(np.float32)
    widths: dict[str, Any] = {"bits": bits, "block": block, "element": ELEMENT_TYPES[name], **more}
    return Case(BlockwiseMatMulOp, left, codes, scales, None, None, constants=WEIGHTS, **widths)


@pytest.mark.parametrize("target", runnable_targets())
def test_products_with_codes_of_floats(target: str) -> None:
    """By kernels, and lowered where rows are rounded or codes fill no dot groups."""
    cases = [
        float_product(FLOAT4, (1,), (130, 96), 32),
        float_product(FLOAT4, (5,), (9, 80), 16, "float16"),
        float_product("float8_e4m3fn", (1,), (70, 80), 32),
        float_product("float8_e5m2fnuz", (13,), (33, 64), 64, "bfloat16"),
        float_product("float8_e5m2", (2,), (5, 36), 16, left_bits=8),
        float_product(FLOAT4, (2,), (5, 36), 16),
    ]
    check_all(cases, target)


@pytest.mark.parametrize("target", runnable_targets())
def test_products_without_a_kernel_are_lowered(target: str) -> None:
    """
    Codes that are no constants, rows of codes that fill no dot group, rows that are rounded; and numbers on their own.
    """
    cases = [product((3,), (9, 48), 4, 16, "float32", "uint8"), product((2,), (9, 72), 8, 32, left_bits=8)]
    cases[0].constants = ()
    cases += [product((3,), (9, 44), 2, 16), product((1,), (9, 66), 8, 32, bias=True)]
    for bits in WIDTHS:
        numbers = weights((2, 5, 48), bits, 32, "float16", "uint8")
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
        depth = data.draw(st.integers(1, 12)) * (32 // bits)
        sizes = data.draw(st.integers(1, 150)), depth
        kinds = data.draw(st.sampled_from(("float32", "float16"))), data.draw(st.sampled_from(("", "uint8", "float32")))
        rows = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)))
        cases.append(product(rows, sizes, bits, block, *kinds, bias=data.draw(st.booleans())))
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
    module, inputs = module_of(product((2,), (300, 96), 4, 32, "float32", "uint8"))
    assert check_parts(module, inputs, target=target) > 1
