"""ONNX's operators that create strings, take maps or decode images: they are computed in Python on the host."""
