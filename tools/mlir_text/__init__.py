"""MLIR text and its tests: split inputs, expected diagnostics, CHECK lines, and excerpts of errors."""
