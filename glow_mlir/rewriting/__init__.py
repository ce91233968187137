"""What passes share: formulas and their search, quantized values, runs, buffers, operands of bodies."""
