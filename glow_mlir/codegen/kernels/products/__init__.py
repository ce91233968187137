"""Kernels of products: matrix products and convolutions, their nests, tiles and packing."""
