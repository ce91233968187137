"""How TOSA executes operators, a module for each family; importing this fills the table of `rules.py`."""

from tosa_backend import body
from tosa_backend.emitters import codes, convolution, indexing, matrices, movement, pooling, reductions, resize

__all__ = ["body", "codes", "convolution", "indexing", "matrices", "movement", "pooling", "reductions", "resize"]
