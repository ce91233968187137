"""The public API: sessions of models and bundles, and onnxruntime's interface on top of them."""
