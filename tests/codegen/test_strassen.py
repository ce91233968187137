"""Products by Strassen's algorithm: tables, packing, the kernel on views, and where it is selected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from emitted import TARGETS, aligned, compiled, sum_and_relu
from execute import Case, check_all, compile_module, module_of, runnable_targets, sample
from machines import stray_symbols, target_named
from packed import laid_out, strassen
from xdsl.dialects import arith
from xdsl.ir import Block

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.bodies import ExtraOperand, Prologue
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.strassen import Halves, Rows, Sizes, emit_strassen, strassen_is_faster
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.constants.layouts import strassen_panels
from glow_mlir.constants.strassen import LEFT, RESULT, RIGHT
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.body import YieldOp
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

PADDING = 16

BOUND = 1e-7
"""Largest error, in parts of the largest result and of the square root of the depth, for normal operands."""


def test_tables_give_the_product() -> None:
    random = np.random.default_rng(0)
    left, right = random.standard_normal((2, 2, 2, 3, 3))
    products = [
        np.tensordot(a, left.reshape(4, 3, 3), 1) @ np.tensordot(b, right.reshape(4, 3, 3), 1)
        for a, b in zip(LEFT, RIGHT, strict=True)
    ]
    found = np.tensordot(RESULT, products, 1).reshape(2, 2, 3, 3)
    np.testing.assert_allclose(found, np.einsum("ikab,kjbc->ijac", left, right), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("rows", "columns", "panel"), [(2, 8, 4), (6, 128, 64), (14, 96, 16)])
def test_packing_round_trip(rows: int, columns: int, panel: int) -> None:
    matrix = sample((rows, columns))
    layout = strassen_panels(matrix.shape, panel)
    found = laid_out(layout, matrix)
    assert found.shape == layout.shape == (columns // 2 // panel, 7, rows // 2, panel)
    np.testing.assert_allclose(layout.unpack(found), matrix, rtol=0, atol=1e-6)
    stored = strassen_panels((columns, rows), panel, transposed=True)
    np.testing.assert_array_equal(laid_out(stored, np.ascontiguousarray(matrix.T)), found)


@pytest.mark.parametrize(("rows", "columns"), [(3, 8), (2, 12)])
def test_packing_refuses_what_has_no_halves(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match=r"quarters|halves"):
        strassen_panels((rows, columns), 4)


SCALE = Block(arg_types=[f32, f32])
SCALE.add_op(scaled := arith.MulfOp(SCALE.args[0], SCALE.args[1]))
SCALE.add_op(YieldOp.create(operands=[scaled.result]))


def product(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product in f64."""
    return rows.astype(np.float64) @ matrix


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", TARGETS)
def test_product_between_views(name: str, seed: int) -> None:
    """
    Random sizes and pitches; every other time an epilogue with all kinds of extra operands, one of them the result
    itself, and every third time a prologue.
    """
    target = PRESETS[name]
    random = np.random.default_rng(seed)
    tile = tile_for(target, f32)
    extents = (*random.integers(1, 7, 2).tolist(), int(random.integers(5, 50)))
    depth = 2 * tile.lanes * int(random.integers(1, 5))
    columns = 2 * tile.panel * int(random.integers(1, 4))
    buffers = [(extents[0], extents[1] + gap, extents[2] + 2 * gap) for gap in random.integers(0, 3, 2).tolist()]
    source, target_shape = (*buffers[0], depth + 3), (*buffers[1], columns + 5)

    def inside(array: np.ndarray, size: int) -> np.ndarray:
        return array[:, : extents[1], : extents[2], :size]

    x = np.full(source, np.nan, dtype=np.float32)
    inside(x, depth)[...] = random.standard_normal((*extents, depth))
    matrix, bias = random.standard_normal((depth, columns)).astype(np.float32), sample((columns,))
    result, second = (np.full(target_shape, np.pi, dtype=np.float32) for _ in range(2))
    inside(result, columns)[...] = random.standard_normal((*extents, columns))
    before, pixels = result.copy(), sample((*extents, 1))
    rows = Rows(extents, contiguous_strides(source)[:-1], contiguous_strides(target_shape)[:-1])
    item = rows.count // extents[0]
    block = min(item * extents[0], int(random.integers(2 * tile.rows, 90)))
    cut = Halves(block, item, depth // 2, tile.panel, PADDING)
    epilogue = sum_and_relu(9 * (seed % 4 // 2)) if seed % 2 else None

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, bias, second, pixels, factors, *scratch = arguments
        steps = contiguous_strides(target_shape)
        extras = (
            ExtraOperand(second, f32, steps),
            ExtraOperand(out, f32, steps),
            ExtraOperand(pixels, f32, (*contiguous_strides((*extents, 1))[:-1], 0)),
        )
        operands = ProductOperands(out, inp, w, bias, epilogue=epilogue, extras=extras if epilogue else ())
        prologue = Prologue("scale", SCALE, (ExtraOperand(factors, f32, (0, 0, 0, 1)),)) if seed % 3 else None
        emit_strassen(b, operands, rows, columns, cut=cut, scratch=scratch, prologue=prologue)

    scratch = [aligned(np.full(size, np.nan, dtype=np.float32)) for size in cut.scratch()]
    packed = aligned(strassen(matrix, tile.panel))
    factors = sample((depth,)) if seed % 3 else np.ones(depth, dtype=np.float32)
    run = compiled(target, 9, 0, body, verify=seed == 0)
    run(result, x, packed, bias, second, pixels, factors, *scratch)
    expected = product(inside(x, depth) * factors, matrix) + bias
    limit = BOUND * math.sqrt(depth) * max(1, float(np.abs(expected).max()))
    if epilogue is not None:
        expected += inside(before, columns) + pixels
        np.testing.assert_allclose(inside(second, columns), expected, rtol=0, atol=limit)
        expected = np.maximum(expected, 0)
    np.testing.assert_allclose(inside(result, columns), expected, rtol=0, atol=limit)
    for array in (result, second):
        inside(array, columns)[...] = np.pi
        assert (array == np.float32(np.pi)).all()


@pytest.mark.parametrize("depth", [64, 512, 4096])
@pytest.mark.parametrize(("count", "columns"), [(16, 256), (49, 512), (197, 256)])
def test_error_against_f64(count: int, columns: int, depth: int) -> None:
    target = target_named("host")
    random, panel = np.random.default_rng(depth), tile_for(target, f32).panel
    x, matrix = (random.standard_normal(shape).astype(np.float32) for shape in ((count, depth), (depth, columns)))
    rows = Rows((1, 1, count), (0, 0, depth), (0, 0, columns))
    cut = Halves(min(count, 96), count, depth // 2, panel, PADDING)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, *scratch = arguments
        emit_strassen(b, ProductOperands(out, inp, w), rows, columns, cut=cut, scratch=scratch)

    scratch = [aligned(np.zeros(size, dtype=np.float32)) for size in cut.scratch()]
    result = np.zeros((count, columns), dtype=np.float32)
    run = compiled(target, 3 + len(scratch), 0, body)
    run(result, x, aligned(strassen(matrix, panel)), *scratch)
    expected = product(x, matrix)
    limit = BOUND * math.sqrt(depth) * float(np.abs(expected).max())
    assert float(np.abs(result - expected).max()) <= limit


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_products_share_their_sums(name: str) -> None:
    """Products of different sizes need one pair of functions, and no symbol from outside, on every target."""
    target = PRESETS[name]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr] * 6) as (b, (out, inp, w, bias, *scratch)):
        for count, depth, columns in [(64, 128, 256), (49, 64, 128), (300, 32, 256)]:
            rows = Rows((1, 1, count), (0, 0, depth), (0, 0, columns))
            cut = Halves(min(count, 48), count, depth // 2, tile_for(target, f32).panel, PADDING)
            emit_strassen(b, ProductOperands(out, inp, w, bias), rows, columns, cut=cut, scratch=scratch)
    assert sum(name.startswith("strassen") for name in module.signatures) == 2
    assert not stray_symbols(compile_text(emit_module(flattened(module.module)), target), target)


def matmul_case(rows: tuple[int, ...], depth: int, columns: int, **properties: Any) -> Case:
    """A product with a constant matrix and a bias."""
    shape = (columns, depth) if properties.get("transpose_right") else (depth, columns)
    return Case(MatMulOp, sample((*rows, depth)), sample(shape), sample((columns,)), constants=(1, 2), **properties)


def pointwise_case(height: int, width: int, channels: int, filters: int, **properties: Any) -> Case:
    """A convolution with constant filters of one element and a bias."""
    operands = (sample((2, height, width, channels)), sample((filters, 1, 1, channels)), sample((filters,)))
    return Case(ConvOp, *operands, constants=(1, 2), **properties)


CASES = [
    matmul_case((1, 197), 256, 256),
    matmul_case((2, 3, 64), 256, 384, transpose_right=True),
    pointwise_case(9, 11, 256, 128),
    pointwise_case(18, 22, 128, 256, strides=[2, 2]),
]


SEPARATE = [
    matmul_case((3, 49), 256, 256),
    matmul_case((40, 4), 128, 256),
    matmul_case((2, 3, 64), 256, 256),
    matmul_case((2, 301), 512, 256),
    pointwise_case(7, 7, 256, 256),
    pointwise_case(19, 20, 512, 128),
]
"""Products of several items: some of them in one block, or each in several."""


def kernels_of(cases: list[Case], target: str = "host", accuracy: str = "default") -> list[str]:
    """The kernels of the products and convolutions."""
    module, _ = module_of(*cases)
    Compilation(module, target=f"{target},accuracy={accuracy}").run(until="selected")
    found = (op for op in module.walk() if op.name in ("glow_low.conv", "glow_low.matmul"))
    return [str(getattr(op.properties["kernel"], "data", "")) for op in found]


@pytest.mark.parametrize("target", [name for name in runnable_targets() if name != "scalar"])
def test_against_the_interpreter(target: str) -> None:
    assert kernels_of(CASES, target) == ["matmul-strassen"] * 2 + ["conv-strassen"] * 2
    check_all(CASES, target, tolerance=5e-5)


@pytest.mark.parametrize("spoiled", [1e6, np.inf, np.nan])
@pytest.mark.parametrize("target", [name for name in runnable_targets() if name != "scalar"])
def test_items_do_not_spoil_each_other(target: str, spoiled: float) -> None:
    """Images, and batches of rows, have the same bits beside others of another scale, or that are no numbers."""
    assert {name.split("-")[1] for name in kernels_of(SEPARATE, target)} == {"strassen"}
    module, inputs = module_of(*SEPARATE)
    program = compile_module(module, target)
    others = {name: array.copy() for name, array in inputs.items()}
    for array in others.values():
        array[1::2] *= spoiled
    expected, found = program.run(inputs), program.run(others)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name][::2], array[::2])


def test_strict_accuracy_does_without() -> None:
    assert kernels_of(CASES, accuracy="strict") == ["matmul"] * 2 + ["conv"] * 2


def test_interpreter_runs_what_was_selected() -> None:
    """The matrices come back from their sums, up to rounding."""
    module, inputs = module_of(*CASES)
    expected = run_function(module.clone(), inputs)
    Compilation(module).run(until="selected")
    found = run_function(module, inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-4)


def test_matrices_that_are_no_constants_are_not_cut() -> None:
    assert kernels_of([Case(MatMulOp, sample((128, 256)), sample((256, 256)))]) == ["matmul"]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (Sizes(1, 128, 768, 768), True),
        (Sizes(1, 49, 512, 2048), True),
        (Sizes(8, 16, 512, 2048), True),
        (Sizes(1, 16, 512, 2048), False),
        (Sizes(128, 1, 768, 768), False),
        (Sizes(64, 3, 768, 768), False),
        (Sizes(1, 3136, 64, 256), False),
        (Sizes(1, 1, 4096, 4096), False),
        (Sizes(1, 128, 1000, 768), False),
        (Sizes(1, 128, 768, 100), False),
    ],
)
def test_where_it_is_faster(sizes: Sizes, expected: bool) -> None:
    """Not for few rows, columns or depth, for items of single rows, nor where halves are no whole panels or vectors."""
    assert strassen_is_faster(target_named("avx512"), f32, sizes) == expected


@pytest.mark.parametrize(
    ("target", "fewest"), [("sse4", range(20, 28)), ("avx2", range(14, 20)), ("avx512", range(32, 48))]
)
@pytest.mark.parametrize("extent", [384, 512, 768])
def test_faster_machines_need_more_rows_to_read_more_weights(target: str, fewest: range, extent: int) -> None:
    """Sums of weights are more to read: that takes as long as more products where these are done faster."""
    machine = target_named(target)
    faster = [rows for rows in range(2, 128, 2) if strassen_is_faster(machine, f32, Sizes(1, rows, extent, extent))]
    assert faster[0] in fewest
    assert faster == list(range(faster[0], 128, 2))
