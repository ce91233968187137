"""Passes that decide what is quantized, and compute on quantized values."""
