"""Code for machines whose addresses have 32 bits: indices, extents and pointers are as wide as these."""

from __future__ import annotations

import re

import numpy as np
import pytest
from execute import Case, module_of, sample

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm import wasm
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import is_arithmetic, symbols, undefined_symbols
from glow_mlir.dialects.glow_high import (
    activations,
    convolution,
    data_movement,
    elementwise_math,
    indexing,
    linear,
    normalization,
    pooling,
    reductions,
)
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.errors import OptionError

SMALL = sorted(name for name, target in PRESETS.items() if target.pointer_bits == 32)

ELF_32 = 1
"""The class of a file with addresses of 32 bits, in the fifth byte of it."""

WIDE_INDEX = re.compile(r"getelementptr [^\n]*, ptr [^\n]*, i64 ")

I64 = np.arange(4, dtype=np.int64)

CASES = {
    "conv": Case(convolution.ConvOp, sample((1, 12, 12, 8)), sample((16, 3, 3, 8)), None, constants=[1]),
    "depthwise": Case(convolution.ConvOp, sample((1, 12, 12, 8)), sample((8, 3, 3, 1)), None, constants=[1], group=8),
    "matmul": Case(linear.MatMulOp, sample((5, 33)), sample((33, 20)), constants=[1]),
    "product": Case(linear.MatMulOp, sample((5, 33)), sample((33, 20))),
    "softmax": Case(normalization.SoftmaxOp, sample((6, 11)), axis=1),
    "sum": Case(reductions.ReduceSumOp, sample((6, 11)), axes=[1]),
    "maxpool": Case(pooling.MaxPoolOp, sample((1, 9, 9, 5)), kernel_shape=[3, 3]),
    "gather": Case(indexing.GatherOp, sample((7, 5)), I64, axis=0),
    "scatter": Case(indexing.ScatterNDOp, sample((7, 5)), I64.reshape(4, 1), sample((4, 5))),
    "top_k": Case(reductions.TopKOp, sample((6, 11)), k=3),
    "transpose": Case(data_movement.TransposeOp, sample((6, 11, 3)), permutation=[2, 0, 1]),
    "exp": Case(elementwise_math.ExpOp, sample((6, 11))),
    "relu": Case(activations.ReluOp, sample((6, 11))),
}


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("name", sorted(CASES))
def test_indices_are_as_wide_as_addresses(name: str, target: str) -> None:
    module, _ = module_of(CASES[name])
    Compilation(module, target=target, runner=PassRunner(verify_each=True)).run()
    text = emit_module(module)
    assert "getelementptr" in text
    assert not WIDE_INDEX.search(text)
    data = compile_text(text, PRESETS[target])
    assert data[4] == ELF_32 or data.startswith(wasm.MAGIC)
    assert [symbol.name for symbol in symbols(data) if symbol.exported and symbol.defined] == ["main"]
    missing = undefined_symbols(data)
    # Without an FPU, floats are calls of the compiler's library.
    assert not missing or (PRESETS[target].linking.float_abi == "soft" and all(map(is_arithmetic, missing)))


@pytest.mark.parametrize("target", SMALL)
def test_several_threads_need_pointers_of_64_bits(target: str) -> None:
    module, _ = module_of(CASES["relu"])
    with pytest.raises(OptionError, match="parts of a call are shared with pointers of 64 bits alone"):
        Compilation(module, target=f"{target},threads=2").run()
