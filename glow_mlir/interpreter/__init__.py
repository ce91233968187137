"""The meaning of every operation, on numpy, one file per family."""
