"""Shared by passes: formulas and their search, quantized values, elementwise runs, buffers, epilogue operands."""
