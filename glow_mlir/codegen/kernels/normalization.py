"""Kernels of softmax and of normalization over trailing axes: they are chains of stages."""

from __future__ import annotations

from glow_mlir.codegen.kernels.generic import FormKernel
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high import normalization as ops


@kernel("softmax")
class SoftmaxKernel(FormKernel):
    """The largest element of each line, exponentials and their sum, and what follows from these."""

    name = "softmax"
    OPERATORS = (ops.SoftmaxOp, ops.LogSoftmaxOp)


@kernel("layer-normalization")
class LayerNormalizationKernel(FormKernel):
    """
    Statistics in two passes over each line (the mean, then the squares of differences from it), and a third to store.

    A line that the first pass read is in the cache for the others.
    """

    name = "layer-normalization"
    OPERATORS = (ops.LayerNormalizationOp, ops.RmsNormalizationOp)
