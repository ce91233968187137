"""Bundles in C programs: every form of call, mistakes, threads, two bundles in one program, and strict compilers."""

from __future__ import annotations

from pathlib import Path

import pytest
from c_programs import built, checked, run
from in_process import run_tool

from glow_mlir.tools import glow_compile

TABLE = "glow_high.constant @{0} : tensor<3x4xf32> {{value = dense<[{1}]> : tensor<3x4xf32>}}"
ROWS = ", ".join(str([10.0 * row + column for column in range(4)]) for row in range(3))

LOOKUP = f"""
{TABLE.format("table", ROWS)}
glow_high.placeholder @x : tensor<2xi64> {{input, label = "int"}}
glow_high.placeholder @y : tensor<2x4xf32> {{output, label = "int%"}}
glow_high.func @main(@x, @y) {{
  %t = glow_high.get @table : tensor<3x4xf32>
  %i = glow_high.get @x : tensor<2xi64>
  %0 = glow_high.gather %t, %i : tensor<2x4xf32>
  glow_high.save %0, @y
}}
"""

COUNT = f"""
{TABLE.format("rows", ROWS)}
glow_high.placeholder @x : tensor<4xf32> {{input, label = ""}}
glow_high.placeholder @total : tensor<4xf32> {{state, value = dense<0.5> : tensor<4xf32>}}
glow_high.func @main(@x, @total, @y) {{
  %x = glow_high.get @x : tensor<4xf32>
  %old = glow_high.get @total {{mutable}} : tensor<4xf32>
  %new = glow_high.add %old, %x : tensor<4xf32>
  glow_high.save %new, @total
  %t = glow_high.get @rows : tensor<3x4xf32>
  %0 = glow_high.add %t, %new : tensor<3x4xf32>
  glow_high.save %0, @y
}}
glow_high.placeholder @y : tensor<3x4xf32> {{output, label = "1st */ ä"}}
"""

CUT = """
glow_high.func @main(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %y = glow_high.exp %x : tensor<256x512xf32>
  glow_high.return %y
}
"""


FREE = """
glow_high.func @main(
    %x: tensor<?x4xf32, #glow.sizes<[n], n = 1 to 3>>) -> tensor<?x4xf32, #glow.sizes<[n], n = 1 to 3>> {
  %y = glow_high.neg %x : tensor<?x4xf32, #glow.sizes<[n], n = 1 to 3>>
  glow_high.return %y
}
"""


def compiled(folder: Path, *arguments: object) -> None:
    """Run `glow-compile` in a folder."""
    done = run_tool(glow_compile.main, list(map(str, arguments)), program="glow-compile", directory=folder)
    assert done.code == 0, done.stderr


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bundles `pair`, of two models, `cut`, for two threads, and `seen` and `free`, instrumented."""
    folder = tmp_path_factory.mktemp("bundles")
    for name, text in (("lookup", LOOKUP), ("count", COUNT), ("cut", CUT), ("free", FREE)):
        (folder / f"{name}.mlir").write_text(text)
    compiled(folder, "lookup=lookup.mlir", "count=count.mlir", "--name", "pair", "--api", "dynamic", "-o", "out")
    compiled(folder, "cut.mlir", "--threads", 2, "--emit", "archive", "-o", "out")
    compiled(folder, "count.mlir", "--name", "seen", "--instrument", "--constants", "object", "-o", "out")
    compiled(folder, "free.mlir", "--instrument", "-o", "out")
    return folder / "out"


@pytest.mark.extra
def test_c_calls_bundles_in_every_form(bundles: Path) -> None:
    source = Path(__file__).with_name("two_models.c")
    objects = [bundles / "pair.o", bundles / "cut.a", bundles / "seen.o", bundles / "free.o"]
    program = built(bundles / "program", [source, *objects], "-pthread", f"-I{bundles}")
    assert run(program, bundles / "pair.weights.bin") == ""


@pytest.mark.extra
@pytest.mark.parametrize("flags", [("-std=c99", "-xc"), ("-std=c++17", "-xc++")])
def test_headers_are_strict_c_and_cpp(bundles: Path, flags: tuple[str, ...]) -> None:
    checked(bundles / "pair.h", *flags)
    checked(bundles / "seen.debug.h", *flags)


def test_models_share_constants_of_the_same_content(bundles: Path) -> None:
    # The table, the initial value of the state, and the seal.
    assert (bundles / "pair.weights.bin").stat().st_size == 64 + 64 + 16
