"""Products by the tile registers of AMX, which are emulated: the very sums of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from assembly import assembly_of, innermost_loops
from candidates import candidates_of, instructions_of, stacked
from cut import check_parts
from execute import Case, assert_same, check_all, compile_module, module_of, sample
from machines import dot_product_targets, target_named, tile_targets
from tile_emulation import emulate_tiles
from xdsl.dialects.builtin import f32

from glow_mlir import InferenceSession
from glow_mlir.codegen.builder.amx import TileSize, configuration
from glow_mlir.codegen.kernels.products import tile_products
from glow_mlir.codegen.kernels.products.gemm import TILE_PRODUCTS
from glow_mlir.codegen.kernels.products.output_pixels import Pixels
from glow_mlir.codegen.kernels.products.strips import Strips, row_strips
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text
from glow_mlir.codegen.selection.selected import fault_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

RANDOM = np.random.default_rng(3)
BYTES = (np.uint8, np.int8)
TARGETS = tile_targets()
BRAIN_TARGETS = [target for target in TARGETS if "avx512bf16" in target]


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tile registers are emulated."""
    emulate_tiles(monkeypatch)


@pytest.fixture
def always(emulated: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are also taken where they do not pay."""

    def pays(*_: object) -> bool:
        return True

    monkeypatch.setattr(tile_products, "_pays", pays)


def integers(shape: Sequence[int], kind: type[np.generic]) -> np.ndarray:
    """Integers of the whole range of a type."""
    info = np.iinfo(np.dtype(kind).name)
    return RANDOM.integers(info.min, info.max, shape, kind, endpoint=True)


def product(rows: int, depth: int, columns: int, left: type[np.generic] = np.uint8, **properties: Any) -> Case:
    """A product of codes with a constant matrix and a bias."""
    bias = integers((columns,), np.int32)
    return Case(MatMulOp, integers((rows, depth), left), integers((depth, columns), np.int8), bias, **properties)


def convolution(
    size: int, channels: int, filters: int, kernel: int, left: type[np.generic] = np.uint8, **properties: Any
) -> Case:
    """A convolution of codes with a bias."""
    weights = integers((filters, kernel, kernel, channels // properties.get("group", 1)), np.int8)
    return Case(
        ConvOp, integers((1, size, size, channels), left), weights, integers((filters,), np.int32), **properties
    )


def chosen(case: Case, target: str = "amx") -> list[bool]:
    """Whether tile registers compute each product of a case."""
    module = stacked(case, target=target)
    found = [candidates_of(op, module, target)[0] for op in instructions_of(module) if op.name != "glow_low.pad"]
    return [bool(way.tiles.get(TILE_PRODUCTS)) for way in found if way.kernel.name in ("matmul", "conv")]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left", BYTES)
def test_matrix_products_are_exact(target: str, left: type[np.generic]) -> None:
    """Rows that are no multiple of strips, columns that are none of tiles, depths of any whole number of dot groups."""
    cases = [
        product(*sizes, left, constants=constants)
        for sizes in [
            (32, 64, 64),
            (49, 128, 100),
            (1, 4, 1),
            (17, 192, 16),
            (33, 36, 70),
            (100, 320, 65),
            (16, 68, 33),
        ]
        for constants in ((1,), ())
    ]
    cases.append(Case(MatMulOp, integers((3, 20, 64), left), integers((3, 64, 40), np.int8)))
    turned = integers((2, 40, 64), np.int8)
    cases.append(Case(MatMulOp, integers((2, 20, 64), left), turned, transpose_right=True))
    cases.append(Case(MatMulOp, integers((3, 20, 64), left), integers((64, 40), np.int8), constants=(1,)))
    assert all(all(chosen(case, target)) for case in cases)
    check_all(cases, target, 0.0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left", BYTES)
def test_convolutions_are_exact(target: str, left: type[np.generic]) -> None:
    """Strides, dilations, groups, one to three axes; pixels in one line, in lines, and in lines that run together."""
    cases = [
        convolution(8, 64, 64, 1, left, constants=(1,)),
        convolution(9, 64, 40, 3, left, constants=(1,)),
        convolution(16, 64, 64, 3, left, constants=(1,)),
        convolution(30, 32, 33, 3, left, constants=(1,)),
        convolution(15, 64, 64, 3, left, constants=(1,), strides=[2, 2]),
        convolution(14, 64, 32, 1, left, constants=(1,), strides=[2, 2]),
        convolution(20, 16, 32, 3, left, group=2),
        convolution(12, 8, 70, 3, left, dilations=[2, 1]),
        convolution(40, 4, 16, 7, left, strides=[2, 2]),
        Case(ConvOp, integers((2, 19, 8), left), integers((16, 4, 8), np.int8)),
        Case(ConvOp, integers((2, 4, 5, 6, 4), left), integers((7, 2, 2, 2, 4), np.int8), constants=(1,)),
    ]
    assert all(all(chosen(case, target)) for case in cases)
    check_all(cases, target, 0.0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("case", [product(128, 256, 130, constants=(1,)), convolution(20, 64, 70, 3, constants=(1,))])
def test_all_candidates_are_exact(case: Case) -> None:
    """Blocks of any number of rows, with and without fetching ahead."""
    target = TARGETS[-1]
    module = stacked(case, target=target)
    (op,) = instructions_of(module)
    found = [way for way in candidates_of(op, module, target) if way.tiles.get(TILE_PRODUCTS)]
    assert {way.tiles["prefetch"] for way in found} == {0, 1}
    _, inputs = module_of(case)
    expected = run_function(module.clone(), inputs)
    for way in found:
        selected = module.clone()
        (op,) = instructions_of(selected)
        way.write(op, Storage(selected), target_named(target))
        assert_same(expected, compile_module(selected).run(inputs))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "case",
    [
        product(128, 64, 130, constants=(1,)),
        product(40, 64, 300),
        Case(MatMulOp, integers((9, 20, 64), np.int8), integers((9, 64, 40), np.int8)),
        convolution(20, 32, 70, 3, constants=(1,)),
        convolution(9, 32, 200, 1),
    ],
)
def test_parts_give_the_same_sums(case: Case) -> None:
    module, inputs = module_of(case)
    assert check_parts(module, inputs, target=TARGETS[-1]) > 0


def brain(*shape: int) -> np.ndarray:
    """Random numbers of bf16."""
    return sample(shape, "bfloat16")


def wide(numbers: np.ndarray) -> np.ndarray:
    """Numbers in f64."""
    return numbers.astype(np.float32).astype(np.float64)


def tile_sums(left: np.ndarray, right: np.ndarray, step: int) -> np.ndarray:
    """
    Sums in f32 of the products of `[M, K]` and `[K, N]` in bf16, as `tdpbf16ps` gives them: for each `step` of the
    depth those at even and at odd places by multiply-adds from zero, and then both accumulators together.
    """
    x, y = wide(left), wide(right)
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for first in range(0, x.shape[1], step):
        halves = np.zeros((2, *total.shape), np.float32)
        for k in range(first, first + step):
            # Exact in f64, so that it is rounded once.
            halves[k % 2] = (halves[k % 2] + x[:, k, np.newaxis] * y[k]).astype(np.float32)
        total = total + (halves[0] + halves[1])
    return total


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("depth", "step"), [(64, 32), (2, 2), (40, 20), (96, 32), (68, 2 * 2)])
def test_products_of_bf16_are_those_of_the_instruction(depth: int, step: int) -> None:
    for target in BRAIN_TARGETS:
        x, y, bias = brain(35, depth), brain(depth, 50), sample((50,))
        case = Case(MatMulOp, x, y, bias, constants=(1,), to=f32)
        assert chosen(case, target) == [True]
        module, inputs = module_of(case)
        (found,) = compile_module(module, target).run(inputs).values()
        expected = tile_sums(x, y, step) + bias
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", BRAIN_TARGETS)
def test_products_of_bf16(target: str) -> None:
    """What they are in the interpreter, up to the order of sums."""
    options: dict[str, Any] = {"constants": (1,), "to": f32}
    cases = [
        Case(MatMulOp, brain(49, 128), brain(128, 100), sample((100,)), **options),
        Case(MatMulOp, brain(33, 34), brain(40, 34), transpose_right=True, to=f32),
        Case(MatMulOp, brain(2, 20, 64), brain(2, 64, 40), to=f32),
        Case(ConvOp, brain(1, 9, 9, 64), brain(40, 3, 3, 64), sample((40,)), **options),
        Case(ConvOp, brain(1, 15, 15, 32), brain(64, 3, 3, 32), strides=[2, 2], **options),
        Case(ConvOp, brain(2, 8, 8, 64), brain(32, 1, 1, 64), **options),
        Case(ConvOp, brain(1, 12, 12, 16), brain(32, 3, 3, 8), group=2, to=f32),
    ]
    assert all(all(chosen(case, target)) for case in cases)
    check_all(cases, target, 1e-5)


@pytest.mark.parametrize("target", BRAIN_TARGETS)
def test_large_convolutions_of_bf16_take_tiles(target: str) -> None:
    """Winograd's algorithm saves products of f32, which cost more than those of tiles."""
    case = Case(ConvOp, brain(1, 30, 30, 64), brain(64, 3, 3, 64), constants=(1,), to=f32)
    assert chosen(case, target) == [True]


RESIDUAL = """
glow_high.func @main(%x: tensor<49x64xui8>, %y: tensor<49x40xi32>, %w: tensor<64x40xi8>) -> tensor<49x40xi32> {
  %before = glow_high.add %y, %y : tensor<49x40xi32>
  %accumulators = glow_high.matmul %x, %w, none : tensor<49x40xi32>
  %both = glow_high.add %accumulators, %before : tensor<49x40xi32>
  glow_high.return %both
}
"""


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_two_strips_have_are_stored_once(target: str) -> None:
    """The residual that a product adds may lie where its result goes."""
    inputs = {"x": integers((49, 64), np.uint8), "y": integers((49, 40), np.int32), "w": integers((64, 40), np.int8)}
    module = parse_module(RESIDUAL, new_context())
    (expected,) = InferenceSession(module, backend="interpreter").run(None, inputs)
    (found,) = InferenceSession(module, target=target, cache=False).run(None, inputs)
    np.testing.assert_array_equal(found, expected)


RESCALED = """
glow_high.func @main(%x: tensor<40x64xui8>, %w: tensor<64x128xi8>, %m: tensor<128xf32>, %o: tensor<128xf32>)
    -> tensor<40x128xTYPE> {
  %accumulators = glow_high.matmul %x, %w, none : tensor<40x128xi32>
  %y = glow_high.rescale %accumulators, %m, %o {to = TYPE} : tensor<40x128xTYPE>
  glow_high.return %y
}
"""

SPECIAL = [np.nan, np.inf, -np.inf, 3e9, -3e9, 4e4, -4e4, 255.5, 254.5, -128.5, -127.5, -0.5, 0.5, 2.5]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", [*TARGETS, *dot_product_targets()])
@pytest.mark.parametrize(
    "to",
    [
        "ui8",
        "i8",
        "!quant.uniform<u8:f32, 0.5:131>",
        "!quant.uniform<i8:f32, 0.5:-128>",
        "!quant.uniform<i8<-127:127>:f32, 0.5:3>",
    ],
)
def test_sums_become_whole_rows_of_codes(target: str, to: str) -> None:
    """Numbers half-way between two codes, beyond all codes and integers, and none at all; by dot products, too."""
    multiplier = np.exp2(RANDOM.integers(-14, 8, 128)).astype(np.float32)
    offset = RANDOM.normal(scale=100, size=128).astype(np.float32)
    multiplier[: len(SPECIAL)], offset[: len(SPECIAL)] = 2.0**-20, SPECIAL
    weights = integers((64, 128), np.int8)
    weights[:, : len(SPECIAL)] = 0
    arrays = {"x": integers((40, 64), np.uint8), "w": weights, "m": multiplier, "o": offset}
    inputs = {f"main.{name}": array for name, array in arrays.items()}
    module = parse_module(RESCALED.replace("TYPE", to), new_context())
    expected = run_function(module.clone(), inputs)
    assert_same(expected, compile_module(module, target).run(inputs))


@pytest.mark.parametrize(("to", "packing"), [("ui8", "vpackuswb"), ("i8", "vpacksswb")])
def test_rows_of_codes_are_packed(to: str, packing: str) -> None:
    """Four vectors of accumulators become one of bytes, which packing limits: there is no maximum."""
    module = parse_module(RESCALED.replace("TYPE", to), new_context())
    Compilation(module, target="amx").run()
    text = assembly_text(emit_module(module), target_named("amx"))
    (end,) = [loop for loop in innermost_loops(text) if loop.function.startswith("strip.i32.64")]
    assert [sum(name in line for line in end.lines) for name in ("vcvtps2dq", packing, "vmaxps")] == [4, 1, 0]
    assert not end.spills


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (product(128, 768, 768, constants=(1,)), True),
        (product(1, 768, 768, constants=(1,)), False),
        (product(64, 66, 64, constants=(1,)), False),
        (product(784, 12, 64, constants=(1,)), False),
        (convolution(58, 64, 64, 3, constants=(1,)), True),
        (convolution(14, 16, 96, 1, constants=(1,)), False),
        (convolution(230, 3, 64, 7, constants=(1,), strides=[2, 2]), False),
    ],
)
def test_tiles_multiply_where_they_pay(case: Case, wanted: bool) -> None:
    assert chosen(case) == [wanted]
    assert chosen(case, "avx512") == [False]


def test_inner_loops_hold_nothing_but_products() -> None:
    """Two strips with two tiles of columns: as many loads as products, no stack, and no configuration."""
    for case in (product(128, 768, 768, constants=(1,)), convolution(58, 64, 64, 3, constants=(1,))):
        text = assembly_of(case, "amx")
        assert text.count("ldtilecfg") == 1
        assert text.count("tilerelease") == 1
        loops = [loop for loop in innermost_loops(text) if any("tdpbusd" in line for line in loop.lines)]
        (full,) = [loop for loop in loops if loop.function.startswith("tiles.tdpbusd.2x2")]
        assert [sum(name in line for line in full.lines) for name in ("tileload", "tdpbusd")] == [4, 4]
        assert not full.spills
        assert not any("ldtilecfg" in line for loop in innermost_loops(text) for line in loop.lines)


def test_strips_cover_each_pixel_once() -> None:
    assert (row_strips(49).rows, row_strips(49).count) == (13, 4)
    assert (row_strips(7).rows, row_strips(7).count) == (7, 1)
    # 3x3 filters over a border: 7 lines of 9 pixels as one; over every other pixel, lines by themselves.
    dense = Strips.of(Pixels(7, 7, 64, (1,), 9 * 64, (7,)))
    assert (dense.lines, dense.length, dense.pitch, dense.stored, dense.count) == (1, 61, 9, 7, 4)
    apart = Strips.of(Pixels(28, 28, 128, (1,), 2 * 57 * 64, (28,)))
    assert (apart.lines, apart.rows, apart.count) == (28, 14, 56)


def test_a_configuration_says_rows_and_bytes() -> None:
    found = configuration([TileSize(13, 64), TileSize(16, 48)])
    assert found.nbytes == 64
    assert found[0] == 1
    assert found[16:20].view(np.uint16).tolist() == [64, 48]
    assert found[48:51].tolist() == [13, 16, 0]


def test_tiles_that_a_machine_has_not_are_an_error() -> None:
    """What was selected for another machine."""
    module = stacked(product(128, 64, 64, constants=(1,)), target="amx")
    (op,) = instructions_of(module)
    way = candidates_of(op, module, "amx")[0]
    way.write(op, Storage(module), target_named("amx"))
    fault = fault_of(op, {way.kernel.name: way.kernel}, target_named("avx512"))
    assert fault is not None
    assert f"has no tiles '{TILE_PRODUCTS}'" in fault[0]
