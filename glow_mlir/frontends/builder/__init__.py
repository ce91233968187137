"""Builders of `glow_high` modules, shared by all front ends."""
