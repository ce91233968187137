"""Importers of ONNX's operators, one file per family."""
