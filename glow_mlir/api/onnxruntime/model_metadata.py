"""The metadata of a model: producer, name, version, and custom properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from glow_mlir.api.model_identity import is_importable, is_ir
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ModelMetadata:
    """The metadata of a model; for our modules, all fields but the producer are empty."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: Mapping[str, str] = field(default_factory=dict[str, str])


def model_metadata(model: Any) -> ModelMetadata:
    """The metadata of a model; raises `ModelError` if its file can no longer be read."""
    if is_ir(model):
        return ModelMetadata(producer_name="glow-mlir")
    if is_importable(model):
        return ModelMetadata(**model.described()) if hasattr(model, "described") else ModelMetadata()
    from glow_mlir.frontends.onnx.metadata import metadata_of

    return ModelMetadata(**metadata_of(model))
