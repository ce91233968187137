"""Convolution by Winograd's algorithm: transforms, packing, the kernel on views, and where it is selected."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from dense_conv import conv_shape
from emitted import TARGETS, aligned, compiled, convolution, sum_and_relu
from execute import Case, check_all, module_of, runnable_targets, sample
from machines import stray_symbols, target_named
from packed import laid_out, winograd

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.bodies import ExtraOperand
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.builder.types import f32, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.copies import Box
from glow_mlir.codegen.kernels.products.convolution import ConvShape
from glow_mlir.codegen.kernels.products.pack_winograd import emit_pack_winograd
from glow_mlir.codegen.kernels.products.product_operands import ProductOperands
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.codegen.kernels.products.winograd import Blocking, WinogradShape, emit_winograd
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.constants.layouts import winograd_panels
from glow_mlir.constants.winograd import OUTPUTS, STRIDES, TAPS, TileForm, transforms
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_low.memory import AllocOp, buffer_type
from glow_mlir.dialects.target import Target
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.support.dtypes import named_dtype

BOUNDS = {2: 8e-8, 4: 4e-7}
"""
Outputs of a line of a tile → largest error, in parts of the largest output and of the square root of the channels, for
normal inputs and He weights.
"""

FORMS = [TileForm(2, 2), TileForm(4, 4), TileForm(2, 4), TileForm(2, 2, 2), TileForm(4, 4, 2), TileForm(4, 2, 2)]
"""Square and oblong tiles, of filters that move by one and by two."""


def bound(form: TileForm, channels: int) -> float:
    """The bound of a form, which below 16 channels is that of 16."""
    return BOUNDS[max(form.height, form.width)] * math.sqrt(max(channels, 16))


def blocked(
    target: Target, form: TileForm, extents: tuple[int, int], batch: int, channels: int, block: int = 24
) -> Blocking:
    """How a convolution is cut into tiles of a form, for any number of filters."""
    shape = WinogradShape(extents, batch, channels, 64, form.stride)
    block = min(block, shape.tiles(form))
    return shape.blocking(
        target, f32, {"height": form.height, "width": form.width, "block": block, "prefetch": block % 2}
    )


def he(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal filters that keep the variance of what they are applied to."""
    return (random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_transforms_give_the_convolution(outputs: int, stride: int) -> None:
    matrices = transforms(outputs, stride)
    assert (matrices.outputs, matrices.inputs) == (outputs, stride * (outputs - 1) + TAPS)
    random = np.random.default_rng(0)
    data, taps = random.standard_normal(matrices.inputs), random.standard_normal(TAPS)
    weights = (matrices.filter @ taps)[np.minimum(np.arange(matrices.inputs), matrices.weights - 1)]
    found = matrices.output @ (weights * (matrices.input @ data))
    np.testing.assert_allclose(found, np.correlate(data, taps)[::stride], rtol=1e-12, atol=1e-12)
    for matrix in (matrices.input, matrices.output):
        np.testing.assert_array_equal(matrix.astype(np.float32), matrix)


@pytest.mark.parametrize(("count", "channels", "panel"), [(5, 3, 4), (32, 7, 16), (3, 1, 64)])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_packing_round_trip(form: TileForm, count: int, channels: int, panel: int) -> None:
    filters = sample((count, 3, 3, channels))
    layout = winograd_panels(filters.shape, panel, form)
    found = laid_out(layout, filters)
    assert found.shape == layout.shape == (-(-count // panel), math.prod(form.weights), channels, panel)
    assert found.dtype == np.float32
    np.testing.assert_allclose(layout.unpack(found), filters, rtol=1e-6, atol=1e-6)


def test_filters_of_another_size_have_no_transform() -> None:
    with pytest.raises(ValueError, match="only those of 3x3"):
        winograd_panels((4, 5, 5, 4), 16, TileForm(4, 4))


@dataclasses.dataclass(frozen=True)
class Layer:
    """A convolution between views: sizes, and how many further pixels and channels the buffers have."""

    shape: ConvShape
    extents: tuple[int, int]
    inputs: tuple[int, int]
    batch: int
    channels: int
    filters: int
    source: tuple[int, int, int, int]
    target: tuple[int, int, int, int]

    @staticmethod
    def random(random: np.random.Generator, lanes: int, stride: int) -> Layer:
        """Images of 1 to 33 lines, one to three vectors of channels and filters, one or two images."""
        height, width = (int(size) for size in random.integers(1, 34, 2))
        channels, filters = (lanes * int(count) for count in random.integers(1, 4, 2))
        batch, more, wider = int(random.integers(1, 3)), int(random.integers(0, 3)), int(random.integers(0, 9))
        lines, pixels = (stride * (size - 1) + TAPS for size in (height, width))
        source = (batch, lines + more, pixels + more, channels + wider)
        target = (batch, height + more, width + more, filters + wider)
        dense = conv_shape([lines, pixels], [3, 3], channels, filters, batch=batch, strides=(stride, stride))
        pitches: dict[str, Any] = {
            "input_pitches": (source[2] * source[3], source[3]),
            "input_image": source[1] * source[2] * source[3],
            "output_pitches": (target[2] * target[3], target[3]),
            "output_image": target[1] * target[2] * target[3],
        }
        shape = dataclasses.replace(dense, **pitches)
        return Layer(shape, (height, width), (lines, pixels), batch, channels, filters, source, target)

    def read(self, array: np.ndarray) -> np.ndarray:
        """The part of a buffer that the convolution reads."""
        lines, pixels = self.inputs
        return array[:, :lines, :pixels, : self.channels]

    def inside(self, array: np.ndarray) -> np.ndarray:
        """The part of a buffer that the convolution writes."""
        height, width = self.extents
        return array[:, :height, :width, : self.filters]


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense array, in elements."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", TARGETS)
def test_convolution_between_views(name: str, seed: int, form: TileForm) -> None:
    """Random sizes and pitches, with NaN around the input; every other time a body with all kinds of extra operands."""
    target = PRESETS[name]
    random = np.random.default_rng(seed)
    layer = Layer.random(random, target.vector_width(f32), form.stride)
    shape, extents, batch, channels, filters = layer.shape, layer.extents, layer.batch, layer.channels, layer.filters
    x = np.full(layer.source, np.nan, dtype=np.float32)
    layer.read(x)[...] = random.standard_normal((batch, *layer.inputs, channels))
    weights = he(random, filters, 3, 3, channels)
    bias, residual = sample((filters,)), random.standard_normal(layer.target).astype(np.float32)
    pixels = random.standard_normal((batch, *extents, 1)).astype(np.float32)
    cut = blocked(target, form, extents, batch, channels)
    epilogue = sum_and_relu(9 * (seed % 4 // 2)) if seed % 2 else None

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, bias, second, residual, pixels, *scratch = arguments
        steps = strides(layer.target)
        extras = (
            ExtraOperand(second, f32, steps),
            ExtraOperand(residual, f32, steps),
            ExtraOperand(pixels, f32, (*strides((batch, *extents, 1))[:-1], 0)),
        )
        operands = ProductOperands(out, inp, w, bias, epilogue=epilogue, extras=extras if epilogue else ())
        emit_winograd(b, operands, shape, cut=cut, source=f32, scratch=scratch)

    packed = aligned(winograd(weights, tile_for(target, f32).panel, form))
    scratch = [aligned(np.full(size, np.nan, dtype=np.float32)) for size in cut.scratch()]
    result, second = (np.full(layer.target, np.pi, dtype=np.float32) for _ in range(2))
    compiled(target, 10, 0, body, verify=seed == 0)(result, x, packed, bias, second, residual, pixels, *scratch)
    expected = convolution(layer.read(x), weights, shape) + bias
    limit = 2 * bound(form, channels) * max(1, float(np.abs(expected).max()))
    if epilogue is not None:
        expected += layer.inside(residual) + pixels
        np.testing.assert_allclose(layer.inside(second), expected, rtol=0, atol=limit)
        expected = np.maximum(expected, 0)
    np.testing.assert_allclose(layer.inside(result), expected, rtol=0, atol=limit)
    for array in (result, second):
        layer.inside(array)[...] = np.pi
        assert (array == np.float32(np.pi)).all()


@pytest.mark.parametrize("extents", [(9, 5), (14, 14), (4, 29)], ids=str)
@pytest.mark.parametrize("channels", [32, 512])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_error_against_f64(form: TileForm, channels: int, extents: tuple[int, int]) -> None:
    target = target_named("host")
    random = np.random.default_rng(channels)
    lines, pixels = (form.stride * (size - 1) + TAPS for size in extents)
    shape = conv_shape([lines, pixels], [3, 3], channels, 64, strides=(form.stride, form.stride))
    x = random.standard_normal((1, lines, pixels, channels)).astype(np.float32)
    weights = he(random, 64, 3, 3, channels)
    cut = blocked(target, form, extents, 1, channels)
    scratch = [aligned(np.zeros(size, dtype=np.float32)) for size in cut.scratch()]

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, w, *scratch = arguments
        emit_winograd(b, ProductOperands(out, inp, w), shape, cut=cut, source=f32, scratch=scratch)

    result = np.zeros((1, *extents, 64), dtype=np.float32)
    packed = aligned(winograd(weights, tile_for(target, f32).panel, form))
    compiled(target, 6, 0, body)(result, x, packed, *scratch)
    expected = convolution(x, weights, shape)
    assert float(np.abs(result - expected).max()) <= bound(form, channels) * float(np.abs(expected).max())


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_layers_share_their_transforms(name: str) -> None:
    """Layers of different sizes need one pair of transforms, and no symbol from outside, on every target."""
    target = PRESETS[name]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr] * 7) as (b, (out, inp, w, bias, *scratch)):
        for size, channels, filters in [(16, 64, 64), (17, 128, 64), (14, 64, 128)]:
            shape = conv_shape([size + 2, size + 2], [3, 3], channels, filters)
            cut = blocked(target, TileForm(4, 4), (size, size), 1, channels)
            emit_winograd(b, ProductOperands(out, inp, w, bias), shape, cut=cut, source=f32, scratch=scratch)
    assert sum(name.startswith("winograd") for name in module.signatures) == 2
    assert not stray_symbols(compile_text(emit_module(flattened(module.module)), target), target)


def layer_case(height: int, width: int, channels: int, filters: int, **properties: Any) -> Case:
    """A convolution with a constant filter and a bias."""
    weights = he(np.random.default_rng(0), filters, 3, 3, channels)
    operands = (sample((2, height, width, channels)), weights, sample((filters,)))
    return Case(ConvOp, *operands, constants=(1, 2), **properties)


@pytest.mark.parametrize(("height", "width"), [(6, 9), (19, 32), (40, 17)])
@pytest.mark.parametrize("target", runnable_targets())
def test_against_the_interpreter(target: str, height: int, width: int) -> None:
    """Two layers with several panels, the last of them in part, and the border that the input gets from its pads."""
    cases = [
        layer_case(height, width, 32, 80),
        layer_case(height, width, 48, 32, pads=[1, 1, 1, 1]),
        layer_case(4 * height, 4 * width, 64, 64, strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    assert kernels_of(cases, target) == ["conv-winograd"] * 3
    check_all(cases, target, tolerance=2e-5)


def kernels_of(cases: list[Case], target: str = "host", accuracy: str = "default") -> list[str]:
    """The kernels of the convolutions."""
    module, _ = module_of(*cases)
    Compilation(module, target=f"{target},accuracy={accuracy}").run(until="selected")
    found = (op for op in module.walk() if op.name == "glow_low.conv")
    return [str(getattr(op.properties["kernel"], "data", "")) for op in found]


def test_strict_accuracy_does_without() -> None:
    assert kernels_of([layer_case(16, 16, 32, 32)], accuracy="strict") == ["conv"]


def test_interpreter_runs_what_was_selected() -> None:
    """The filter comes back from its points, up to rounding."""
    module, inputs = module_of(layer_case(16, 16, 32, 32))
    expected = run_function(module.clone(), inputs)
    Compilation(module).run(until="selected")
    found = run_function(module, inputs)
    np.testing.assert_allclose(found["out0"], expected["out0"], rtol=0, atol=1e-5)


def dense(shape: tuple[int, ...]) -> Any:
    """The value of a dense buffer of f32."""
    return AllocOp.of(buffer_type(shape, f32)).result


@pytest.mark.parametrize(("filters", "channels"), [(64, 16), (80, 48), (16, 64)])
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("name", TARGETS)
def test_filters_are_transformed_at_run_time(name: str, form: TileForm, filters: int, channels: int) -> None:
    """Each panel by the part that it belongs to, as the compiler does it, up to rounding."""
    target = PRESETS[name]
    plain = aligned(he(np.random.default_rng(filters), filters, 3, 3, channels))
    wanted = winograd(plain, tile_for(target, f32).panel, form)

    def body(b: Builder, arguments: list[Value]) -> None:
        (*pointers, part), shapes = arguments, (wanted.shape, plain.shape)
        packed, taps = (Operand(at, dense(shape)) for at, shape in zip(pointers, shapes, strict=True))
        emit_pack_winograd(b, packed, Box.all_of(taps), form, Partition(part, 3))

    found = aligned(np.full(wanted.shape, np.nan, dtype=np.float32))
    function = compiled(target, 2, 1, body)
    for part in range(3):
        function(found, plain, part)
    columns = (np.moveaxis(array, 0, 2).reshape(*wanted.shape[1:3], -1)[..., :filters] for array in (found, wanted))
    np.testing.assert_allclose(*columns, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("target", runnable_targets())
def test_filters_that_are_no_constants(target: str) -> None:
    """They are transformed in each call, where the image is large enough to make up for it."""
    weights = he(np.random.default_rng(0), 80, 3, 3, 32)
    cases = [
        Case(ConvOp, sample((2, 19, 32, 32)), weights, sample((80,))),
        Case(ConvOp, sample((2, 80, 88, 32)), weights, None, strides=[2, 2], pads=[1, 1, 1, 1]),
    ]
    assert kernels_of(cases, target) == ["conv-winograd"] * 2
    check_all(cases, target, tolerance=2e-5)


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_filters_that_are_no_constants(dtype: str, target: str) -> None:
    """They are widened on their way to the transform; where there are products of bf16, these may be faster."""
    weights = he(np.random.default_rng(0), 32, 3, 3, 32)
    operands = (operand.astype(named_dtype(dtype)) for operand in (sample((1, 40, 40, 32)), weights))
    case = Case(ConvOp, *operands, to=f32)
    assert kernels_of([case], target) == ["conv-winograd"]
    check_all([case], target, tolerance=2e-5)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (((56, 56), 1, 64, 64), TileForm(4, 4)),
        (((14, 14), 1, 256, 256), TileForm(4, 4)),
        (((7, 7), 1, 512, 512), TileForm(2, 4)),
        (((7, 7), 8, 512, 512), TileForm(4, 4)),
        (((2, 40), 1, 64, 64), TileForm(2, 4)),
        (((3, 3), 1, 512, 512), None),
        (((56, 56), 1, 3, 64), None),
        (((56, 56), 1, 64, 36), None),
        (((56, 56), 1, 16, 64), TileForm(4, 4)),
        (((14, 14), 1, 8, 32), None),
        (((1, 64), 1, 64, 64), TileForm(2, 4)),
        (((1, 9), 1, 64, 64), None),
        (((28, 28), 1, 128, 128, 2), TileForm(4, 4, 2)),
        (((14, 14), 1, 256, 256, 2), TileForm(2, 2, 2)),
        (((28, 28), 1, 16, 32, 2), None),
    ],
)
def test_rule(sizes: tuple[Any, ...], expected: TileForm | None) -> None:
    """Larger tiles for larger images; the plain kernel for small ones, few channels, and parts of vectors."""
    assert WinogradShape(*sizes).forms(PRESETS["avx2"], f32)[0] == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (((56, 56), 16, 64, 64), TileForm(4, 4)),
        (((14, 14), 1, 256, 256), TileForm(2, 2)),
        (((7, 7), 1, 512, 512), None),
        (((7, 7), 8, 512, 512), TileForm(4, 4)),
    ],
)
def test_rule_for_filters_that_are_no_constants(sizes: tuple[Any, ...], expected: TileForm | None) -> None:
    shape = WinogradShape(*sizes, is_packed=False)
    assert shape.forms(PRESETS["avx2"], f32)[0] == expected
