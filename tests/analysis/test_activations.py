"""The model of memory that schedules go by has the views that the instructions have."""

from __future__ import annotations

from glow_mlir.analysis.activations import program_of
from glow_mlir.analysis.program import peak
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.text import parse_module

QUANTIZED = "!quant.uniform<u8:f32, 0.02:128>"

TEXT = f"""
glow_high.func @main(%x: tensor<64x64xui8>) -> tensor<64x64xui8> {{
  %t = glow_high.transpose %x {{permutation = [1, 0]}} : tensor<64x64xui8>
  %c = glow_high.storage_cast %t {{to = {QUANTIZED}}} : tensor<64x64x{QUANTIZED}>
  %n = glow_high.storage_cast %c {{to = ui8}} : tensor<64x64xui8>
  %s = glow_high.max %t, %n : tensor<64x64xui8>
  %y = glow_high.transpose %s {{permutation = [1, 0]}} : tensor<64x64xui8>
  glow_high.return %y
}}
"""


def test_codes_under_another_type_are_no_other_memory() -> None:
    (function,) = high_functions(parse_module(TEXT, new_context()))
    program = program_of(function.block)
    assert peak(program, range(len(program.steps))) == 64 * 64
