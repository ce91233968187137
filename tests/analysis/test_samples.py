"""Which rows of products are known to be of one sample."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from glow_mlir.analysis.samples import samples_of
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.samples import Samples, reshaped_samples
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import high_functions

BATCH, ROWS, DEPTH = (8, True), (128, False), (16, False)


def function(shape: str, result: str, body: str, constants: str = "") -> str:
    """The text of a module whose function reads `%x` and saves `%y`."""
    return f"""
    glow_high.placeholder @x : tensor<{shape}xf32> {{input}}
    glow_high.placeholder @y : tensor<{result}xf32> {{output}}
    {constants}
    glow_high.func @main(@x, @y) {{
      %x = glow_high.get @x : tensor<{shape}xf32>
      {body}
      glow_high.save %y, @y
    }}"""


def saved_samples(text: str) -> Samples:
    """What is known of the value that the function saves."""
    module: ModuleOp = Parser(new_context(), text).parse_module()
    module.verify()
    (main,) = high_functions(module)
    (save,) = (op for op in main.block.ops if isinstance(op, SaveOp))
    return samples_of(main.block, Storage(module))[save.input]


WEIGHTS = "glow_high.constant @w : tensor<16x16xf32> {value = dense<1.0> : tensor<16x16xf32>}"
PRODUCT = """%w = glow_high.get @w : tensor<16x16xf32>
      %y = glow_high.matmul {}, %w : tensor<{}x16xf32>"""

CASES: dict[str, tuple[str, str, str, int]] = {
    "rows of a matrix are samples": ("128x16", "128x16", PRODUCT.format("%x", "128"), 128),
    "one sample has many rows": ("1x128x16", "1x128x16", PRODUCT.format("%x", "1x128"), 1),
    "each sample has many rows": ("8x128x16", "8x128x16", PRODUCT.format("%x", "8x128"), 8),
    "samples and rows in one axis": (
        "8x128x16",
        "1024x16",
        f"%f = glow_high.reshape %x {{shape = [1024, 16]}} : tensor<1024x16xf32>\n{PRODUCT.format('%f', '1024')}",
        8,
    ),
    "an axis of samples apart again": (
        "8x128x16",
        "4x256x16",
        f"%f = glow_high.reshape %x {{shape = [4, 256, 16]}} : tensor<4x256x16xf32>\n{PRODUCT.format('%f', '4x256')}",
        8,
    ),
    "steps before samples": (
        "8x128x16",
        "128x8x16",
        "%t = glow_high.transpose %x {permutation = [1, 0, 2]} : tensor<128x8x16xf32>\n"
        + PRODUCT.format("%t", "128x8"),
        1024,
    ),
    "two halves of a batch beside each other": (
        "8x128x16",
        "4x256x16",
        """%a = glow_high.slice %x {starts = [0, 0, 0], ends = [4, 128, 16]} : tensor<4x128x16xf32>
      %b = glow_high.slice %x {starts = [4, 0, 0], ends = [8, 128, 16]} : tensor<4x128x16xf32>
      %c = glow_high.concat %a, %b {axis = 1} : tensor<4x256x16xf32>
      """
        + PRODUCT.format("%c", "4x256"),
        1024,
    ),
    "two samples beside each other": (
        "8x128x16",
        "1x2x16",
        """%a = glow_high.slice %x {starts = [0, 0, 0], ends = [1, 1, 16]} : tensor<1x1x16xf32>
      %b = glow_high.slice %x {starts = [1, 0, 0], ends = [2, 1, 16]} : tensor<1x1x16xf32>
      %c = glow_high.concat %a, %b {axis = 1} : tensor<1x2x16xf32>
      """
        + PRODUCT.format("%c", "1x2"),
        2,
    ),
    "sums of samples, which may be masked": (
        "8x128x16",
        "1x128x16",
        "%s = glow_high.reduce_sum %x {axes = [0]} : tensor<1x128x16xf32>\n" + PRODUCT.format("%s", "1x128"),
        128,
    ),
    "products with samples, which may take some": (
        "16x16",
        "16x16",
        """%w = glow_high.get @w : tensor<16x16xf32>
      %y = glow_high.matmul %w, %x : tensor<16x16xf32>""",
        16,
    ),
    "two samples masked into one image": (
        "8x128x16",
        "1x128x16",
        """%a = glow_high.slice %x {starts = [0, 0, 0], ends = [1, 128, 16]} : tensor<1x128x16xf32>
      %b = glow_high.slice %x {starts = [1, 0, 0], ends = [2, 128, 16]} : tensor<1x128x16xf32>
      %c = glow_high.add %a, %b : tensor<1x128x16xf32>
      """
        + PRODUCT.format("%c", "1x128"),
        128,
    ),
    "products of samples with each other": (
        "8x16",
        "8x8",
        "%y = glow_high.matmul %x, %x {transpose_right = true} : tensor<8x8xf32>",
        8,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_runs_of_rows(name: str) -> None:
    """Into how many runs the rows of a product split."""
    shape, result, body, expected = CASES[name]
    found = saved_samples(function(shape, result, body, WEIGHTS))
    assert found.runs(len(found.axes) - 1) == expected


ATTENTION = """
      %q = glow_high.reshape %x {shape = [8, 128, 4, 4]} : tensor<8x128x4x4xf32>
      %t = glow_high.transpose %q {permutation = [0, 2, 1, 3]} : tensor<8x4x128x4xf32>
      %a = glow_high.attention %t, %t, %t : tensor<8x4x128x4xf32>
      %b = glow_high.transpose %a {permutation = [0, 2, 1, 3]} : tensor<8x128x4x4xf32>
      %y = glow_high.reshape %b {shape = [8, 128, 16]} : tensor<8x128x16xf32>"""

KEPT = {
    "attention": ATTENTION,
    "softmax": "%y = glow_high.softmax %x {axis = 2} : tensor<8x128x16xf32>",
    "elementwise": "%y = glow_high.exp %x : tensor<8x128x16xf32>",
    "pad": "%p = glow_high.pad %x {pads = [0, 1, 0, 0, 0, 0]} : tensor<8x129x16xf32>\n"
    "%y = glow_high.slice %p {starts = [0, 1, 0], ends = [8, 129, 16]} : tensor<8x128x16xf32>",
    "transposed convolution": """%f = glow_high.get @f : tensor<16x1x16xf32>
      %y = glow_high.conv_transpose %x, %f : tensor<8x128x16xf32>""",
    "pool": "%y = glow_high.max_pool %x {kernel_shape = [3], pads = [1, 1]} : tensor<8x128x16xf32>",
    "elements along an axis": "%i = glow_high.cast %x {to = i64} : tensor<8x128x16xi64>\n"
    "%y = glow_high.gather_elements %x, %i {axis = 1} : tensor<8x128x16xf32>",
    "running sums": "%y = glow_high.cum_sum %x {axis = 1} : tensor<8x128x16xf32>",
    "resize": '%y = glow_high.resize %x {shape = [8, 128, 16], mode = "linear"} : tensor<8x128x16xf32>',
    "tile": "%s = glow_high.slice %x {starts = [0, 0, 0], ends = [8, 64, 16]} : tensor<8x64x16xf32>\n"
    "%y = glow_high.tile %s {repeats = [1, 2, 1]} : tensor<8x128x16xf32>",
    "reduction": "%s = glow_high.reduce_sum %x {axes = [1], keepdims = false} : tensor<8x16xf32>\n"
    "%r = glow_high.reshape %s {shape = [8, 1, 16]} : tensor<8x1x16xf32>\n"
    "%y = glow_high.expand %r {shape = [8, 128, 16]} : tensor<8x128x16xf32>",
}


@pytest.mark.parametrize("name", KEPT)
def test_samples_stay_along_the_first_axis(name: str) -> None:
    """What works on each sample by itself leaves its rows together."""
    filters = "glow_high.constant @f : tensor<16x1x16xf32> {value = dense<1.0> : tensor<16x1x16xf32>}"
    found = saved_samples(function("8x128x16", "8x128x16", KEPT[name], filters))
    assert found.runs(2) == 8


def test_what_is_not_known_is_apart() -> None:
    body = (
        "%i = glow_high.cast %x {to = i64} : tensor<8x128x16xi64>\n"
        "%y = glow_high.gather_elements %x, %i {axis = 0} : tensor<8x128x16xf32>"
    )
    assert saved_samples(function("8x128x16", "8x128x16", body)).runs(2) == 1024
    one = body.replace("<8x", "<1x")
    assert saved_samples(function("1x128x16", "1x128x16", one)).runs(2) == 1


def test_samples_along_what_is_read_whole_leave_nothing_known() -> None:
    """A mask in a row of several samples may leave each row another one."""
    found = saved_samples(
        function("8x128x16", "8x128x16", "%y = glow_high.softmax %x {axis = 0} : tensor<8x128x16xf32>")
    )
    assert found == Samples.apart((8, 128, 16))


def test_batches_of_recurrent_layers() -> None:
    """A batch behind the steps is one along the inputs' second axis as well."""
    text = """
    glow_high.placeholder @x : tensor<1x5x16xf32> {input}
    glow_high.placeholder @y : tensor<1x5x4xf32> {output}
    glow_high.constant @w : tensor<4x16xf32> {value = dense<1.0> : tensor<4x16xf32>}
    glow_high.constant @h : tensor<5x4xf32> {value = dense<1.0> : tensor<5x4xf32>}
    glow_high.func @main(@x, @y) {
      %x = glow_high.get @x : tensor<1x5x16xf32>
      %w = glow_high.get @w : tensor<4x16xf32>
      %h = glow_high.get @h : tensor<5x4xf32>
      %y, %a, %b = glow_high.lstm_recurrence %x, %w, %h, %h : tensor<1x5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
      glow_high.save %y, @y
    }"""
    module = Parser(new_context(), text).parse_module()
    (main,) = high_functions(module)
    found = samples_of(main.block, Storage(module))
    first = next(op for op in main.block.ops if isinstance(op, GetOp))
    assert found[first.result].runs(2) == 5


@pytest.mark.parametrize(
    ("before", "shape", "after"),
    [
        (((BATCH,), (ROWS,)), (1024,), ((BATCH, ROWS),)),
        (((BATCH, ROWS),), (8, 128), ((BATCH,), (ROWS,))),
        (((BATCH,), (ROWS,)), (2, 512), (((2, True),), ((4, True), ROWS))),
        (((BATCH,), (ROWS,)), (8, 1, 128), ((BATCH,), (), (ROWS,))),
        (((BATCH,), (ROWS,), (DEPTH,)), (8, 2048), ((BATCH,), ((2048, False),))),
        (((ROWS,), (DEPTH,)), (3, 0), (((3, False),), ((0, False),))),
        (((BATCH,), ((6, False),)), (12, 4), (((12, True),), ((4, True),))),
        ((((4, False),), ((6, False),)), (3, 8), (((3, False),), ((8, False),))),
    ],
)
def test_reshapes(before: tuple[object, ...], shape: tuple[int, ...], after: tuple[object, ...]) -> None:
    """Factors of axes go where their elements do; one that would straddle two axes makes the tensor apart."""
    assert reshaped_samples(Samples(before), shape).axes == after  # pyright: ignore[reportArgumentType]
