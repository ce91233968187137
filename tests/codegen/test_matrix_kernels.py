"""Matrix product, convolution and depthwise convolution against numpy in f64."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from dense_conv import conv_shape
from emitted import GUARD, TARGETS, Array, aligned, compiled, convolution, guarded, sum_and_relu
from machines import stray_symbols
from packed import filters_in_panels, in_panels, laid_out
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block

from glow_mlir.backends.cpu.targets import PRESETS, host_target
from glow_mlir.codegen.bodies import ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.kernels.products.convolution import ConvShape, emit_conv
from glow_mlir.codegen.kernels.products.depthwise import emit_depthwise
from glow_mlir.codegen.kernels.products.dot_products import multiply_adds
from glow_mlir.codegen.kernels.products.gemm import GemmOptions, emit_gemm
from glow_mlir.codegen.kernels.products.pack_panels import emit_pack_panels, emit_pack_transposed
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tiles import balanced, tile_for
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.constants.layouts import depthwise_filters, matrix_panels
from glow_mlir.dialects.glow_low.memory import contiguous_strides

ELEMENTS = {np.float32: f32, np.float64: f64}


def check(result: Array, expected: Array, kind: Any) -> None:
    """Compare, and see that nothing beyond the result was written."""
    size = expected.size
    tolerance = 2e-4 if kind == np.float32 else 1e-11
    np.testing.assert_allclose(result[:size].reshape(expected.shape), expected, rtol=tolerance, atol=tolerance)
    assert (result[size:] == GUARD).all()


@pytest.mark.parametrize("shape", [(1, 1, 16), (5, 33, 16), (7, 64, 32), (0, 5, 8)])
def test_packing_round_trip(shape: tuple[int, int, int]):
    rows, columns, panel = shape
    matrix = np.random.default_rng(0).standard_normal((rows, columns))
    layout = matrix_panels(matrix.shape, panel)
    panels = laid_out(layout, matrix)
    assert panels.shape == layout.shape == (-(-columns // panel), rows, panel)
    np.testing.assert_array_equal(layout.unpack(panels), matrix)
    assert not panels[-1, :, columns % panel or panel :].any()


@pytest.mark.parametrize(("extent", "most"), [(49, 6), (7, 6), (5, 6), (6, 6), (13, 6), (100, 14)])
def test_balanced_pieces(extent: int, most: int):
    pieces = balanced(extent, most)
    assert sum(count * size for count, size in pieces) == extent
    sizes = [size for _, size in pieces]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


CASES = [(target, kind, dynamic) for target in TARGETS for kind in ELEMENTS for dynamic in (False, True)]


@pytest.mark.parametrize(("name", "kind", "dynamic"), CASES)
def test_gemm(name: str, kind: Any, dynamic: bool):
    target, element = PRESETS[name], ELEMENTS[kind]
    random = np.random.default_rng(0)
    sizes: list[list[int]] = np.vstack([random.integers(1, 51, (3, 3)), [(49, 96, 33), (1, 50, 17)]]).tolist()

    def body(b: Builder, arguments: list[Value]) -> None:
        c, a, w, bias, *extents = arguments
        m, n, k = extents
        emit_gemm(b, ProductOperands(c, a, w, bias, multiply_adds(element)), m, n, k, k, n)

    run = compiled(target, 4, 3, body, verify=True) if dynamic else None
    for m, n, k in sizes:
        a = random.standard_normal((m, k)).astype(kind)
        matrix = random.standard_normal((k, n)).astype(kind)
        bias = random.standard_normal((n,)).astype(kind)

        def fixed(b: Builder, arguments: list[Value], m: int = m, n: int = n, k: int = k) -> None:
            c, a, w, bias = arguments[:4]
            emit_gemm(b, ProductOperands(c, a, w, bias, multiply_adds(element)), m, n, k, k, n)

        result = guarded(m * n, kind)
        packed = aligned(in_panels(matrix, tile_for(target, element).panel))
        (run or compiled(target, 4, 3, fixed))(result, a, packed, bias, m, n, k)
        check(result, a.astype(np.float64) @ matrix.astype(np.float64) + bias, kind)


def test_gemm_into_a_view_adding_up_with_prefetch_and_blocks():
    target = host_target()
    m, n, k, lda, ldc = 70, 40, 9, 11, 45
    random = np.random.default_rng(0)
    a = random.standard_normal((m, lda)).astype(np.float32)
    matrix = random.standard_normal((k, n)).astype(np.float32)
    options = GemmOptions(prefetch=True, block_rows=13)

    def body(b: Builder, arguments: list[Value]) -> None:
        c, a, w = arguments
        emit_gemm(b, ProductOperands(c, a, w), m, n, k, lda, ldc, accumulate=True, options=options)

    result = np.ones((m, ldc), dtype=np.float32)
    packed = aligned(in_panels(matrix, tile_for(target, f32).panel))
    compiled(target, 3, 0, body)(result, a, packed)
    np.testing.assert_allclose(result[:, :n], 1 + a[:, :k] @ matrix, rtol=1e-4, atol=1e-4)
    assert (result[:, n:] == 1).all()


@pytest.mark.parametrize("steps", [0, 9])
@pytest.mark.parametrize("name", TARGETS)
def test_epilogue_of_gemm(name: str, steps: int):
    """A vector a column, a residual with rows of its own pitch, a second output, in registers and in a loop."""
    target = PRESETS[name]
    m, n, k = 13, 37, 8
    random = np.random.default_rng(0)
    shapes = ((m, k), (k, n), (m, n + 3), (n,))
    a, matrix, residual, vector = (random.standard_normal(shape).astype(np.float32) for shape in shapes)

    def body(b: Builder, arguments: list[Value]) -> None:
        c, a, w, second, residual, vector = arguments
        extras = (
            ExtraOperand(second, f32, (n, 1)),
            ExtraOperand(residual, f32, (n + 3, 1)),
            ExtraOperand(vector, f32, (0, 1)),
        )
        operands = ProductOperands(c, a, w, epilogue=sum_and_relu(steps), extras=extras)
        emit_gemm(b, operands, m, n, k, k, n)

    result, second = guarded(m * n, np.float32), guarded(m * n, np.float32)
    packed = aligned(in_panels(matrix, tile_for(target, f32).panel))
    compiled(target, 6, 0, body)(result, a, packed, second, residual, vector)
    total = a.astype(np.float64) @ matrix + residual[:, :n] + vector
    check(second, total, np.float32)
    check(result, np.maximum(total, 0), np.float32)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", TARGETS)
def test_epilogue_of_convolution(name: str, seed: int, depthwise: bool):
    """A residual, a factor a pixel, a second output, over images of any rank."""
    target = PRESETS[name]
    random = np.random.default_rng(100 + seed)
    image, shape = random_shape(random, depthwise)
    sizes = (shape.channels, shape.filters, shape.batch)
    channels, filters, batch = (size for size in sizes if isinstance(size, int))
    channels, filters = channels * shape.groups, filters * shape.groups
    outputs = [size for size in shape.outputs if isinstance(size, int)]
    x = random.standard_normal((batch, *image, channels)).astype(np.float32)
    weights = random.standard_normal((filters, *shape.kernel, channels // shape.groups)).astype(np.float32)
    residual = random.standard_normal((batch, *outputs, filters + 2)).astype(np.float32)
    pixels = random.standard_normal((batch, *outputs, 1)).astype(np.float32)
    dense = contiguous_strides((batch, *outputs, filters))

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, second, residual, pixels = arguments
        extras = (
            ExtraOperand(second, f32, dense),
            ExtraOperand(residual, f32, contiguous_strides((batch, *outputs, filters + 2))),
            ExtraOperand(pixels, f32, (*contiguous_strides((batch, *outputs, 1))[:-1], 0)),
        )
        operands = ProductOperands(out, inp, w, epilogue=sum_and_relu(9 * (seed % 2)), extras=extras)
        (emit_depthwise if depthwise else emit_conv)(b, operands, shape)

    panel = tile_for(target, f32).panel
    packed = (
        laid_out(depthwise_filters(weights.shape), weights)
        if depthwise
        else filters_in_panels(weights, panel, shape.groups)
    )
    total = convolution(x, weights, shape) + residual[..., :filters] + pixels
    result, second = guarded(total.size, np.float32), guarded(total.size, np.float32)
    compiled(target, 6, 0, body)(result, x, aligned(packed), second, residual, pixels)
    check(second, total, np.float32)
    check(result, np.maximum(total, 0), np.float32)


@pytest.mark.parametrize("name", TARGETS)
def test_packing_at_run_time(name: str):
    target = PRESETS[name]
    tile = tile_for(target, f32)
    for n, k in [(tile.panel, 3), (tile.panel + 5, 4), (3, 7)]:
        matrix = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)

        def fixed(b: Builder, arguments: list[Value], n: int = n, k: int = k) -> None:
            emit_pack_panels(b, arguments[0], arguments[1], n, k, n)

        def dynamic(b: Builder, arguments: list[Value]) -> None:
            packed, source, columns, rows = arguments
            emit_pack_panels(b, packed, source, columns, rows, columns)

        expected = in_panels(matrix, tile.panel)
        for body in (fixed, dynamic):
            result = guarded(expected.size, np.float32)
            compiled(target, 2, 2, body)(result, matrix, n, k)
            packed = result[: expected.size].reshape(expected.shape)
            np.testing.assert_array_equal(packed[:-1], expected[:-1])
            used = -(-(n % tile.panel or tile.panel) // tile.lanes) * tile.lanes
            np.testing.assert_array_equal(packed[-1, :, :used], expected[-1, :, :used])
            assert (result[expected.size :] == GUARD).all()


@pytest.mark.parametrize("name", TARGETS)
def test_packing_of_transposed_matrices_at_run_time(name: str):
    target = PRESETS[name]
    panel = tile_for(target, f32).panel
    for n, k in [(panel, 1), (2 * panel + 5, 4), (3, 9), (panel - 1, 16)]:
        pitch = k + 2
        matrix = np.random.default_rng(0).standard_normal((n, pitch)).astype(np.float32)

        def body(b: Builder, arguments: list[Value], n: int = n, k: int = k, pitch: int = pitch) -> None:
            typed = Block(arg_types=[MemRefType(f32, [1])]).args[0]
            packed, source = (Operand(argument, typed) for argument in arguments)
            emit_pack_transposed(b, Box(packed, ()), Box(source, (pitch, 1)), n, k)

        expected = in_panels(matrix[:, :k].T, panel)
        result = guarded(expected.size, np.float32)
        compiled(target, 2, 0, body)(result, matrix)
        packed = result[: expected.size].reshape(expected.shape)
        np.testing.assert_array_equal(packed[:-1], expected[:-1])
        rest = n % panel or panel
        np.testing.assert_array_equal(packed[-1, :, :rest], expected[-1, :, :rest])
        assert (result[expected.size :] == GUARD).all()


def random_shape(random: np.random.Generator, depthwise: bool) -> tuple[list[int], ConvShape]:
    """Return the size of an image, border included, and a shape for it."""
    rank = int(random.integers(1, 4))
    kernel, strides, dilations = ([int(x) for x in random.integers(1, high, rank)] for high in (4, 3, 3))
    extra = random.integers(0, 14 if rank < 3 else 5, rank)
    image = [d * (k - 1) + 1 + int(e) for d, k, e in zip(dilations, kernel, extra, strict=True)]
    groups = int(random.integers(1, 40)) if depthwise else int(random.choice([1, 1, 2, 3]))
    channels = groups * (1 if depthwise else int(random.integers(1, 9)))
    filters = groups * (1 if depthwise else int(random.integers(1, 40)))
    shape = conv_shape(
        image,
        kernel,
        channels,
        filters,
        strides=strides,
        dilations=dilations,
        groups=groups,
        batch=int(random.integers(1, 3)),
    )
    return image, shape


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", TARGETS)
def test_convolution(name: str, seed: int, depthwise: bool):
    target = PRESETS[name]
    random = np.random.default_rng(seed)
    image, shape = random_shape(random, depthwise)
    sizes = (shape.channels, shape.filters, shape.batch)
    channels, filters, batch = (size for size in sizes if isinstance(size, int))
    channels, filters = channels * shape.groups, filters * shape.groups
    kind = np.float64 if seed % 4 == 0 else np.float32
    element = ELEMENTS[kind]
    x = random.standard_normal((batch, *image, channels)).astype(kind)
    weights = random.standard_normal((filters, *shape.kernel, channels // shape.groups)).astype(kind)
    bias = random.standard_normal(filters).astype(kind)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, bias = arguments
        (emit_depthwise if depthwise else emit_conv)(
            b, ProductOperands(out, inp, w, bias, multiply_adds(element)), shape
        )

    panel = tile_for(target, element).panel
    packed = (
        laid_out(depthwise_filters(weights.shape), weights)
        if depthwise
        else filters_in_panels(weights, panel, shape.groups)
    )
    expected = convolution(x, weights, shape) + bias
    result = guarded(expected.size, kind)
    compiled(target, 4, 0, body)(result, x, aligned(packed), bias)
    check(result, expected, kind)


def test_convolution_between_views():
    """Input and output are the interiors of larger buffers; lines long enough for blocks of lines."""
    target = host_target()
    channels, filters, size = 3, 20, 30
    random = np.random.default_rng(0)
    x = random.standard_normal((size + 4, size + 6, channels)).astype(np.float32)
    weights = random.standard_normal((filters, 3, 3, channels)).astype(np.float32)
    dense = conv_shape([size + 2, size + 2], [3, 3], channels, filters)
    out_width = size + 2
    shape = dataclasses.replace(
        dense,
        input_pitches=((size + 6) * channels, channels),
        output_pitches=(out_width * filters, filters),
    )

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w = arguments
        start = out.at((out_width + 1) * filters, f32)
        operands = ProductOperands(start, inp.at((size + 6) * channels, f32), w)
        emit_conv(b, operands, shape, options=GemmOptions(block_rows=64))

    result = np.full((size + 2, out_width, filters), GUARD, dtype=np.float32)
    packed = aligned(filters_in_panels(weights, tile_for(target, f32).panel))
    compiled(target, 3, 0, body)(result, x, packed)
    expected = convolution(x[None, 1 : size + 3, : size + 2], weights, dense)[0]
    np.testing.assert_allclose(result[1:-1, 1:-1], expected, rtol=1e-4, atol=1e-4)
    border = np.ones(result.shape, dtype=bool)
    border[1:-1, 1:-1] = False
    assert (result[border] == GUARD).all()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_layers_share_their_kernels(name: str):
    """Three layers of different sizes need few functions, and no symbol from outside, on every target."""
    target = PRESETS[name]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr] * 4) as (b, (out, inp, w, bias)):
        for image, kernel, channels, filters in [
            ([16, 16], [3, 3], 64, 64),
            ([9, 9], [3, 3], 64, 128),
            ([14, 14], [1, 1], 128, 64),
        ]:
            emit_conv(b, ProductOperands(out, inp, w, bias), conv_shape(image, kernel, channels, filters))
    assert len(module.signatures) <= 9
    assert not stray_symbols(compile_text(emit_module(flattened(module.module)), target), target)
