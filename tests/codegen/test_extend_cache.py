"""Caches that are extended in the memory of the past: results and state are as in separate memory."""

from __future__ import annotations

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

TABLE = "tensor<1x2x?x4xf32, #glow.sizes<[past], past = 0 to 20>>"
LENGTH = "#glow.sizes<[past + 1], past = 0 to 20>"
LONGER = f"tensor<1x2x?x4xf32, {LENGTH}>"

MODULE = f"""
glow_high.placeholder @calls : tensor<1xf32> {{state}}
glow_high.placeholder @past : {TABLE} {{input}}
glow_high.placeholder @rows : tensor<1x2x1x4xf32> {{input}}
glow_high.placeholder @start : tensor<1xi64> {{input}}
glow_high.placeholder @end : tensor<1xi64> {{input}}
glow_high.placeholder @count : tensor<1xf32> {{output}}
glow_high.placeholder @table : {LONGER} {{output}}
glow_high.func @step(@past, @rows, @start, @end, @calls, @count, @table) {{
  %past = glow_high.get @past : {TABLE}
  %rows = glow_high.get @rows : tensor<1x2x1x4xf32>
  %start = glow_high.get @start : tensor<1xi64>
  %end = glow_high.get @end : tensor<1xi64>
  %calls = glow_high.get @calls {{mutable}} : tensor<1xf32>
  %one = glow_high.splat {{value = 1.0 : f32}} : tensor<1xf32>
  %more = glow_high.add %calls, %one : tensor<1xf32>
  %table = glow_high.extend_cache %past, %rows, %start, %end {{length = {LENGTH}}} : {LONGER}
  glow_high.save %more, @calls
  glow_high.save %more, @count
  glow_high.save %table, @table
}}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_that_copies_after_all_changes_state_once(threads: int) -> None:
    session = InferenceSession(parse_module(MODULE, new_context()), threads=threads)
    generator = np.random.default_rng(0)
    table = np.zeros((1, 2, 0, 4), np.float32)
    for number, start in enumerate((0, 1, 2, 1, 4, 0), 1):
        rows = generator.standard_normal((1, 2, 1, 4)).astype(np.float32)
        before = table.copy()
        given = {"past": table, "rows": rows, "start": np.array([start]), "end": np.array([start + 1])}
        count, found = session.run(["count", "table"], given)
        wanted = np.zeros((1, 2, number, 4), np.float32)
        wanted[:, :, :start], wanted[:, :, start : start + 1] = before[:, :, :start], rows
        np.testing.assert_array_equal(count, [number])
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(table, before)
        table = found
