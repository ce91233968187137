"""Kernels: Python functions that build llvm operations, one file per family."""
