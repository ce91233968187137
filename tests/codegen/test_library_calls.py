"""Code for machines that lack arithmetic calls no library for what their models do not say in f64 themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from execute import Case, module_of, sample
from machines import target_named

from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.dialects.element_types import element_type
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.convolution import ConvTransposeOp
from glow_mlir.dialects.glow_high.linear import DetOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp
from glow_mlir.dialects.glow_high.pooling import AvgPoolOp, LpPoolOp, MaxPoolWithIndicesOp
from glow_mlir.dialects.glow_high.reductions import CumSumOp, ReduceMeanOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.glow_high.sampling import GridSampleOp
from glow_mlir.driver.compiler import Compilation
from glow_mlir.support.dtypes import named_dtype

LINE, LONG = sample((6,)), np.arange(1, 7, dtype=np.int64)

FUNCTIONS = [
    *(unary.SinOp, unary.CosOp, unary.TanOp, unary.AsinOp, unary.AcosOp, unary.AtanOp, unary.SinhOp, unary.CoshOp),
    *(unary.AsinhOp, unary.AcoshOp, unary.AtanhOp, unary.ErfOp, unary.RoundOp, unary.CeilOp, unary.SqrtOp),
]

CASTS = [
    *(("int64", "float32"), ("uint64", "float32"), ("float32", "int64"), ("float32", "uint64"), ("int64", "bfloat16")),
    *(
        ("int32", "bfloat16"),
        ("float16", "float32"),
        ("float32", "float16"),
        ("float16", "int64"),
        ("int64", "float16"),
    ),
    *(("bfloat16", "float16"), ("float16", "float8_e4m3fn"), ("uint32", "float32")),
    *(("float16", "uint2"), ("float32", "int4"), ("float16", "int8")),
]

CASES: Sequence[Case] = [
    *(Case(function, LINE) for function in FUNCTIONS),
    Case(binary.PowOp, LINE, LINE),
    Case(binary.ModOp, LINE, LINE, fmod=True),
    *(Case(op, LONG, LONG) for op in (binary.DivOp, binary.ModOp, binary.PowOp, binary.MulOp, binary.BitShiftOp)),
    *(Case(binary.DivOp, LONG.astype(kind), LONG.astype(kind)) for kind in (np.uint64, np.uint32, np.uint8)),
    Case(binary.ModOp, LONG.astype(np.uint32), LONG.astype(np.uint32)),
    *(
        Case(unary.CastOp, np.ones(6, named_dtype(source)), to=element_type(named_dtype(target)))
        for source, target in CASTS
    ),
    Case(ReduceMeanOp, LONG, axes=[0]),
    Case(CumSumOp, LINE, axis=0),
    Case(DetOp, sample((2, 3, 3))),
    Case(LpPoolOp, sample((1, 4, 4, 2)), kernel_shape=(2, 2), p=3),
    Case(AvgPoolOp, sample((1, 4, 4, 2)), kernel_shape=(2, 2), pads=(1, 1, 0, 0)),
    Case(MaxPoolWithIndicesOp, sample((1, 4, 4, 2)), kernel_shape=(2, 2)),
    Case(GridSampleOp, sample((1, 3, 4, 2)), sample((1, 2, 2, 2)), mode="cubic", padding="reflection"),
    Case(ResizeOp, sample((1, 3, 4, 2)), shape=(1, 5, 3, 2), mode="linear"),
    Case(LayerNormalizationOp, sample((2, 6)), sample((6,)), None),
    Case(AttentionOp, *(sample((1, 2, 3, 4)) for _ in range(3))),
    Case(ConvTransposeOp, sample((1, 3, 3, 2)), sample((2, 2, 2, 2)), None),
]
"""What kernels and bodies compute besides sums, products and moves, of every type but f64."""


@pytest.mark.parametrize("machine", ["cortex-m4", "cortex-m55", "riscv64", "wasm32"])
def test_machines_call_no_library(machine: str) -> None:
    module, _ = module_of(*CASES)
    Compilation(module, target=machine).run()
    assert undefined_symbols(compile_text(emit_module(module), target_named(machine))) == ()
