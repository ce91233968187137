"""Rows by blocks of threads: softmax and normalizations, emulated, of whole and odd lengths."""

from __future__ import annotations

import re
from pathlib import Path

import ptx
import pytest
from execute import Case, assert_same, module_of, sample

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, SoftmaxOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

CASES = {
    "one warp": Case(SoftmaxOp, sample((3, 5, 64)), axis=2),
    "a block": Case(SoftmaxOp, sample((4, 1000)), axis=1),
    "an odd row": Case(SoftmaxOp, sample((4, 517)), axis=1),
    "normalization": Case(LayerNormalizationOp, sample((6, 768)), sample((768,)), sample((768,)), axis=1, epsilon=1e-5),
    "odd normalization": Case(LayerNormalizationOp, sample((2, 3, 77)), sample((77,)), axis=2, epsilon=1e-5),
    "f16": Case(SoftmaxOp, sample((4, 256), "f2"), axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_rows(name: str) -> None:
    module, inputs = module_of(CASES[name])
    expected = run_function(module.clone(), inputs)
    compilation = Compilation(module, backend="cuda", target="emulated-sm_80")
    compilation.run(until="selected")
    assert "block-rows" in str(module)
    entry = get_backend("cuda").load(compilation.artifact(), 1).entry()
    for _ in range(2):
        assert_same(expected, entry.run(inputs))


@pytest.mark.extra
@pytest.mark.parametrize("generation", ["sm_75", "sm_100"])
def test_threads_exchange_what_they_fold(generation: str, tmp_path: Path) -> None:
    ptx.ptxas()
    module, _ = module_of(CASES["normalization"])
    text = Compilation(module, backend="cuda", target=generation).artifact().code[0].decode()
    (kernel,) = ptx.assembled(text, generation, tmp_path)
    assert (kernel.spilled, kernel.threads) == (0, 128)
    assert kernel.occupancy(generation) >= 0.25
    assert "shfl.sync.bfly.b32" in text
    assert re.search(r"ld\.global\.v(4\.b32|2\.b64)", text)
    assert re.search(r"st\.global\.v(4\.b32|2\.b64)", text)
