"""Passes on graphs of operators (`glow_high`)."""
