"""Readers of foreign model formats, each producing glow_high."""
