"""Kernels that resize and sample images, and pool their regions."""
