"""Three operators for glow-mlir, which finds them by the entry point that `pyproject.toml` declares."""

from glow_mlir.dialects.packages import OperatorPackage

# Names only: importing this package loads no part, and a part is imported when glow-mlir needs it.
PACKAGE = OperatorPackage(
    operators=("glow_extra_operators.operators",),
    semantics=("glow_extra_operators.semantics",),
    importers=("glow_extra_operators.importers",),
    tflite_importers=("glow_extra_operators.tflite_importers",),
    lowerings=("glow_extra_operators.lowerings",),
    kernels={"cpu": ("glow_extra_operators.kernels",)},
)
"""What this distribution offers."""
