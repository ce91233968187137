"""Semantics of every operation in numpy, one file per family."""
