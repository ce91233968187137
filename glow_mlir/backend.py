"""What onnxruntime calls its backend of the onnx package: `glow_mlir.onnx_backend`."""

from glow_mlir.onnx_backend import GlowBackend as Backend
from glow_mlir.onnx_backend import prepare, run_model, run_node, supports_device

is_compatible = Backend.is_compatible
run = run_model

__all__ = ["Backend", "is_compatible", "prepare", "run", "run_model", "run_node", "supports_device"]
