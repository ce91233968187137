"""Functions of floats in machine code, with stated error bounds."""
