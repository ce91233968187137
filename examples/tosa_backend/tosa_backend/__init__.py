"""A backend for glow-mlir that compiles models to TOSA, which NPUs and Arm's reference model execute."""

from glow_mlir.dialects.packages import OperatorPackage

PACKAGE = OperatorPackage(backends=("tosa_backend.backend",))
"""What this distribution offers."""
