"""A backend for glow-mlir, which finds it by the entry point that `pyproject.toml` declares."""

from glow_mlir.dialects.packages import OperatorPackage

PACKAGE = OperatorPackage(backends=("null_backend.backend",))
"""What this distribution offers."""
