"""Shared by passes: formulas and their search, taps, quantized values, elementwise runs, buffers, epilogue operands."""
