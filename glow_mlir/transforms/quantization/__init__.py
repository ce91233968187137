"""Passes that select values to quantize, and compute on quantized values."""
