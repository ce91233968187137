"""Export of modules of `glow_high` to ONNX models."""
