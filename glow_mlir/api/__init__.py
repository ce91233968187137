"""What users call: sessions of models and bundles, and, over them, the interface that users of onnxruntime know."""
