"""ONNX's operators on strings, maps and images that make new ones: Python computes them on the host."""
