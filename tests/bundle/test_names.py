"""Names in bundles: any model joins any other, and headers compile whatever its inputs are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from c_programs import checked
from in_process import run_tool

import glow_mlir
from glow_mlir.bundle.names import comment
from glow_mlir.tools import glow_compile

CONSTANT = "glow_high.constant @{0} : tensor<2xf32> {{value = dense<{1}.0> : tensor<2xf32>}}"
STATE = 'glow_high.placeholder @{0} : tensor<2xf32> {{state, label = "kept", value = dense<{1}.0> : tensor<2xf32>}}'
MODEL = """
{storage}
glow_high.placeholder @{input} : tensor<2xf32> {{input}}
glow_high.placeholder @y : tensor<2xf32> {{output}}
glow_high.func @main(@{input}, @{state}, @y) {{
  %x = glow_high.get @{input} : tensor<2xf32>
  %a = glow_high.get @weight : tensor<2xf32>
  %b = glow_high.get @{second} : tensor<2xf32>
  %s = glow_high.get @{state} {{mutable}} : tensor<2xf32>
  %0 = glow_high.add %x, %a : tensor<2xf32>
  %1 = glow_high.add %0, %b : tensor<2xf32>
  %2 = glow_high.add %1, %s : tensor<2xf32>
  glow_high.save %2, @{state}
  glow_high.save %2, @y
}}
"""

AWKWARD = """
{inputs}
glow_high.placeholder @result : tensor<2xf32> {{output}}
glow_high.func @main({names}, @result) {{
  %x = glow_high.get @x0 : tensor<2xf32>
  %y = glow_high.neg %x : tensor<2xf32>
  glow_high.save %y, @result
}}
"""
INPUT = 'glow_high.placeholder @x{} : tensor<2xf32> {{input, label = "{}"}}'
NAMES = (
    "sizes",
    "observer",
    "nothing",
    "uint8_t",
    "EOF",
    "int",
    "I",
    "*/",
    "??/",
    "input_x",
    "X",
    "x",
    "complex",
    "M_PI",
)


def compiled(folder: Path, *arguments: object) -> None:
    """Run `glow-compile` in a folder, into its folder `out`."""
    argv = [*map(str, arguments), "-o", "out"]
    done = run_tool(glow_compile.main, argv, program="glow-compile", directory=folder)
    assert done.code == 0, done.stderr


def test_models_whose_names_meet_keep_their_own_storage(tmp_path: Path) -> None:
    first = [CONSTANT.format("weight", 1), CONSTANT.format("encoder.weight", 10), STATE.format("h", 100)]
    second = [CONSTANT.format("weight", 1000), CONSTANT.format("main", 2000), STATE.format("k", 4000)]
    text = MODEL.format(storage="\n".join(first), input="encoder.x", second="encoder.weight", state="h")
    (tmp_path / "main.mlir").write_text(text)
    text = MODEL.format(storage="\n".join(second), input="x", second="main", state="k")
    (tmp_path / "encoder.mlir").write_text(text.replace("func @main", "func @first"))
    compiled(tmp_path, "main=main.mlir", "encoder=encoder.mlir", "--name", "both")
    bundle, x = glow_mlir.load_bundle(tmp_path / "out"), np.zeros(2, np.float32)
    # Each model has a state of its own, though both are called alike.
    (found,) = bundle.run(None, {"encoder.x": x}, entry="main")
    np.testing.assert_array_equal(found, [111, 111])
    (found,) = bundle.run(None, {"x": x}, entry="encoder")
    np.testing.assert_array_equal(found, [7000, 7000])
    (found,) = bundle.run(None, {"encoder.x": x}, entry="main")
    np.testing.assert_array_equal(found, [122, 122])


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles in one folder whose inputs, entries and own names mean something in C, or to each other."""
    folder = tmp_path_factory.mktemp("names")
    for name, labels in (("a", NAMES), ("float", ("x",))):
        inputs = "\n".join(INPUT.format(at, label) for at, label in enumerate(labels))
        names = ", ".join(f"@x{at}" for at in range(len(labels)))
        (folder / f"{name}.mlir").write_text(AWKWARD.format(inputs=inputs, names=names))
    compiled(folder, "a=a.mlir", "a_input=a.mlir", "--name", "several", "--instrument")
    for name in ("glow", "debug", "string", "float"):
        compiled(folder, "entry=float.mlir", "--name", name, "--instrument")
    return folder / "out"


@pytest.mark.extra
@pytest.mark.parametrize("flags", [("-std=c99", "-xc"), ("-std=c++17", "-xc++")])
def test_headers_compile_whatever_things_are_called(awkward: Path, flags: tuple[str, ...]) -> None:
    whole = awkward / "whole.h"
    headers = sorted(path.name for path in awkward.glob("*.debug.h"))
    assert headers == [
        "debug.debug.h",
        "float_model.debug.h",
        "glow_model.debug.h",
        "several.debug.h",
        "string_model.debug.h",
    ]
    lines = ["#ifndef _GNU_SOURCE", "#define _GNU_SOURCE", "#endif", "#include <complex.h>", "#include <math.h>"]
    lines += [f'#include "{name}"' for name in headers] + ["#include <string.h>", "#include <stdio.h>", ""]
    whole.write_text("\n".join(lines))
    checked(whole, *flags, f"-I{awkward}")


def test_macros_of_all_entries_differ(awkward: Path) -> None:
    lines = (awkward / "several.h").read_text().splitlines()
    defined = [line.split()[1] for line in lines if line.startswith("#define")]
    assert len(defined) == len(set(defined)) > 4 * len(NAMES)


@pytest.mark.parametrize("text", ["*/", "**//", "/*/", "???/", "a\\\nb", "/**/"])
def test_comments_end_where_they_should(text: str) -> None:
    found = comment(text)
    assert not any(mark in found for mark in ("*/", "/*", "??", "\\", "\n"))
