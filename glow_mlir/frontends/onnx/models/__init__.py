"""ONNX models as files: types, tensors, graphs, functions, and the repair of invalid models."""
