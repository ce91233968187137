"""Folders of graphs of ONNX for encoder and decoder, as optimum exports them, as checkpoints."""

from __future__ import annotations

from pathlib import Path

from glow_mlir.errors import ModelError
from glow_mlir.frontends.checkpoints.folder import CONFIG, CheckpointFolder, read_json

GRAPHS = {
    "encoder": ("encoder_model.onnx",),
    "decoder": ("decoder_model.onnx", "decoder_model_merged.onnx"),
}
"""Part of a model → the names that its graph may have; `decoder_with_past_model.onnx` lacks some weights."""


def is_onnx_folder(path: Path) -> bool:
    """Whether a folder has the graph of an encoder."""
    return any((path / name).is_file() for name in GRAPHS["encoder"])


def open_onnx_folder(path: Path, part: str) -> CheckpointFolder:
    """
    The description of a folder, and the weights of the graph of the `encoder` or the `decoder`.

    What the graph computes is that of the description. Raises `ModelError` for files that are missing or damaged, and
    `UnsupportedError` for graphs whose weights have no names; see `named_weights`.
    """
    from glow_mlir.frontends.onnx.named_weights import named_weights

    config = read_json(path / CONFIG)
    file = next((path / name for name in GRAPHS[part] if (path / name).is_file()), None)
    if file is None:
        raise ModelError(f"the folder has no {GRAPHS[part][0]}", file=str(path))
    return CheckpointFolder(path, config, *named_weights(file, part))
