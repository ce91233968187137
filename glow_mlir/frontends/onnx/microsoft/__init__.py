"""Operators that onnxruntime adds to ONNX's, and writes itself when it saves a model that it has optimized."""
