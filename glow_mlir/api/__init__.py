"""What users call: `InferenceSession`, and the backend interface of the package onnx."""
