"""Importers of the operators of ai.onnx.ml."""
