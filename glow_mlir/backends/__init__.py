"""Backends: one folder each, with the same file names, found by name in the registry."""
