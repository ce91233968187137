"""The engines, what their environments hold, and what has to be said about them."""

from __future__ import annotations

from dataclasses import dataclass

NUMPY = "numpy==2.4.6"
ONNX = "onnx==1.23.2"
TORCH = "torch==2.13.0"
"""ncnn's converter needs it too, and would take any."""

OURS = "glow"
STRICT = "glow_strict"
"""Ours without kernels that round more than plain sums; it stands beside, and is no peer."""
REFERENCE = "onnxruntime"
"""The engine whose outputs the others' are compared with."""

ONNX_FILE, TFLITE_FILE = ".onnx", ".tflite"
"""The suffixes of models that are measured."""

REFERENCES = {ONNX_FILE: REFERENCE, TFLITE_FILE: "litert"}
"""Suffix of a model → the engine that the others' outputs are compared with."""


@dataclass(frozen=True)
class Engine:
    """
    One engine.

    `packages` are what pip installs; none means that the engine runs in this environment. `accurate` says that it
    computes in 32-bit floats throughout, without approximations that show. `title` is its name in reports, and `models`
    are the suffixes of the models that it takes.
    """

    title: str
    packages: tuple[str, ...]
    accurate: bool = True
    tuned: bool = True
    models: tuple[str, ...] = (ONNX_FILE,)


ENGINES: dict[str, Engine] = {
    OURS: Engine("glow-mlir", (), models=(ONNX_FILE, TFLITE_FILE)),
    STRICT: Engine("glow-mlir, strict", (), models=(ONNX_FILE, TFLITE_FILE)),
    "litert": Engine("LiteRT", ("ai-edge-litert==2.3.0", NUMPY), models=(TFLITE_FILE,)),
    "onnxruntime": Engine("ONNX Runtime", ("onnxruntime==1.31.1", NUMPY)),
    "openvino": Engine("OpenVINO", ("openvino==2026.4.1", NUMPY)),
    "ncnn": Engine("ncnn", ("ncnn==1.0.20261020", "pnnx==20261020", TORCH, NUMPY)),
    "mnn": Engine("MNN", ("MNN==3.6.1", NUMPY), accurate=False),
    "inductor": Engine("PyTorch inductor", (TORCH, ONNX, NUMPY)),
    "xla": Engine("XLA (JAX)", ("jax==0.10.2", ONNX, NUMPY)),
    "iree": Engine("IREE", ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", ONNX, NUMPY), tuned=False),
    "tvm": Engine("TVM", ("apache-tvm==0.27.0.post1", ONNX, NUMPY), tuned=False),
}
"""Name → engine; the modules in `runners/` have the same names."""
