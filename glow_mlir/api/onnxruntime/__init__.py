"""onnxruntime's interface: a facade over the sessions of `glow_mlir.api`, which do not depend on it."""
