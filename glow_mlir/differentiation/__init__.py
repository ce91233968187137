"""Differentiation: gradients as operators of `glow_high`, in reverse mode."""
