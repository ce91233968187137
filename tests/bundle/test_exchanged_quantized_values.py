"""Integers that a bundle takes and gives: what they stand for is in its header and its manifest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from c_programs import built, run
from in_process import run_tool
from models import GraphBuilder
from onnx import TensorProto

from glow_mlir.bundle.exchanged_quantized_values import QuantizationParameters, exchanged_quantization
from glow_mlir.bundle.header import c_float
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import parse_module
from glow_mlir.tools import glow_compile


def model() -> onnx.ModelProto:
    """An image and a plain number of bytes, and codes of another scale with channels behind; sums are no codes."""
    g = GraphBuilder(0)
    scale, zero = g.weight(np.float32(0.58)), g.weight(np.int8(83))
    x = g.node("DequantizeLinear", g.node("Transpose", "image", perm=[0, 2, 1]), scale, zero)
    codes = g.node("QuantizeLinear", g.node("Sigmoid", x), g.weight(np.float32(1 / 256)), g.weight(np.int8(-128)))
    y, sums = g.node("Transpose", codes, perm=[0, 2, 1]), g.node("Add", "plain", "plain")
    given = {"image": (TensorProto.INT8, [1, 4, 5]), "plain": (TensorProto.INT8, [3])}
    return g.model(given, {y: [1, 4, 5], sums: [3]}, opset=14, kind=TensorProto.INT8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("codes")
    onnx.save(model(), made / "m.onnx")
    other = ["one=m.onnx", "two=m.onnx", "--name", "both"]
    for argv in (["m.onnx", "-o", "out"], [*other, "-o", "out"]):
        assert run_tool(glow_compile.main, argv, program="glow-compile", directory=made).code == 0
    return made / "out"


def macros(header: Path) -> dict[str, str]:
    """The macros of scales and zero points, as C has them."""
    return dict(re.findall(r"#define (\w+_(?:SCALE|ZERO_POINT)) (\S+)", header.read_text()))


def test_header_has_scales_and_zero_points_of_codes_alone(folder: Path) -> None:
    assert macros(folder / "m.h") == {
        "M_INPUT_IMAGE_SCALE": "0.58F",
        "M_INPUT_IMAGE_ZERO_POINT": "(83)",
        "M_OUTPUT_TRANSPOSE_4_SCALE": "0.00390625F",
        "M_OUTPUT_TRANSPOSE_4_ZERO_POINT": "(-128)",
    }
    assert len(macros(folder / "both.h")) == 8


def test_manifest_has_them_too(folder: Path) -> None:
    (entry,) = json.loads((folder / "m.json").read_text())["entries"]
    places = {place["name"]: (place.get("scale"), place.get("zero_point")) for place in entry["places"]}
    assert places["image"] == (float(np.float32(0.58)), 83)
    assert places["transpose_4"] == (1 / 256, -128)
    assert places["plain"] == (None, None)


PROGRAM = """
#include <math.h>
#include <stdio.h>
#include "m.h"
static int8_t code_of(float number) {
  const float code = roundf(number / M_INPUT_IMAGE_SCALE) + M_INPUT_IMAGE_ZERO_POINT;
  return (int8_t)fminf(fmaxf(code, INT8_MIN), INT8_MAX);
}
static float number_of(int8_t code) {
  return (float)(code - M_OUTPUT_TRANSPOSE_4_ZERO_POINT) * M_OUTPUT_TRANSPOSE_4_SCALE;
}
int main(void) {
  printf("%d %d %g\\n", code_of(5.8F), code_of(-1000.0F), (double)number_of(0));
  return 0;
}
"""


@pytest.mark.extra
def test_c_makes_and_reads_codes_by_the_macros(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    assert run(built(tmp_path / "program", [tmp_path / "main.c", "-lm"], f"-I{folder}")) == "93 -128 0.5\n"


@pytest.mark.parametrize("number", [1.0, 0.58, 1e-30, 3e38, 16777216.0, 1 / 3])
def test_floats_are_those_of_c(number: float) -> None:
    text = c_float(number)
    assert re.fullmatch(r"\d+\.\d+F|\d+(\.\d+)?e[+-]\d+F", text)
    assert np.float32(text.removesuffix("F")) == np.float32(number)


CHAIN = """
glow_high.placeholder @x : tensor<2x2xi8> {{input}}
glow_high.placeholder @y : tensor<2x2xi8> {{output}}
glow_high.func @main(@x, @y) {{
  %0 = glow_high.get @x : tensor<2x2xi8>
  {before}
  %codes = glow_high.storage_cast %{half} {{to = {type}}} : tensor<2x2x{type}>
  %{next} = glow_high.storage_cast %codes {{to = i8}} : tensor<2x2xi8>
  {after}
  glow_high.save %{end}, @y
}}
"""


def test_many_moves_are_walked_through() -> None:
    half, move = 1200, "%{} = glow_high.transpose %{} {{permutation = [1, 0]}} : tensor<2x2xi8>".format
    text = CHAIN.format(
        before="\n".join(move(number + 1, number) for number in range(half)),
        half=half,
        type="!quant.uniform<i8:f32, 0.5:3>",
        next=half + 1,
        after="\n".join(move(number + 1, number) for number in range(half + 1, 2 * half)),
        end=2 * half,
    )
    (function,) = functions(parse_module(text, new_context()))
    assert isinstance(function, FuncOp)
    codes = QuantizationParameters(0.5, 3)
    assert exchanged_quantization(function) == {("input", "x"): codes, ("output", "y"): codes}
