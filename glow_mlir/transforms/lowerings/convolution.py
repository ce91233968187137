"""Lowerings of convolutions."""
