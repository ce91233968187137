"""Functions of floats in machine code, to stated bounds of error."""
