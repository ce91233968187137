"""The ONNX importer: one file per operator family, one function per operator."""
