"""`--check` and `--dump-values` tell how many operations inside branches and loops they show nothing of."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_process import run_tool

from glow_mlir.tools.glow_run import main

REGIONS = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @flag, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %flag = glow_high.get @flag : tensor<i1>
  %0 = glow_high.exp %x : tensor<4xf32>
  %1 = glow_high.loop %i = 2 (%c = %0) {
    %2 = glow_high.if %flag {
      %3 = glow_high.sqrt %c : tensor<4xf32>
      glow_high.yield %3
    } else {
      glow_high.yield %c
    } : tensor<4xf32>
    %4 = glow_high.sin %2 : tensor<4xf32> loc("inner")
    glow_high.yield %4
  } : tensor<4xf32>
  glow_high.save %1, @y
}
"""


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        (("--check", "interpreter"), "3 operations inside branches and loops are not shown"),
        (("--dump-values", "values", "--values-of", "inner"), "1 operation inside a branch or loop is not shown"),
        (("--dump-values", "values", "--values-of", "[se]*"), "2 operations inside branches and loops are not shown"),
    ],
)
def test_what_regions_hide_is_told(tmp_path: Path, options: tuple[str, ...], hidden: str) -> None:
    for _ in range(2):  # The second time, too, where there is a cache.
        result = run_tool(
            main,
            ["-", *options, "--seed", "0"],
            stdin=REGIONS.encode(),
            environment={"GLOW_CACHE_DIR": str(tmp_path / "cache")},
            directory=tmp_path,
        )
        assert result.stderr.decode().splitlines()[0] == f"glow-run: warning: {hidden}"
