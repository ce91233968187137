"""Operators that onnxruntime adds to ONNX; it also writes them when it saves an optimized model."""
