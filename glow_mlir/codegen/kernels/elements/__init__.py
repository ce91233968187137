"""Kernels that move, select and map elements."""
