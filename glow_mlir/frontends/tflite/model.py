"""A TensorFlow Lite file as a model of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.errors import GlowError, OptionError
from glow_mlir.frontends.tflite.file import Subgraph, Tensor, TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite
from glow_mlir.frontends.tflite.names import Names, names_of
from glow_mlir.runtime.cache import ContentIndex
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension


@dataclass(frozen=True)
class TfliteModel:
    """A file `path`, which must not change while it is used; `glow_mlir.InferenceSession` takes it."""

    path: Path

    def __reduce__(self) -> tuple[type[TfliteModel], tuple[Path]]:
        """Open the file again in another process."""
        return TfliteModel, (self.path,)

    def __str__(self) -> str:
        """Its file."""
        return str(self.path)

    @cached_property
    def file(self) -> TfliteFile:
        """What the file has."""
        return TfliteFile.open(self.path)

    @property
    def identity(self) -> str:
        """A digest of its content."""
        return f"tflite {ContentIndex().digest(self.path)}"

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions: none, since sizes are those of the file."""
        return []

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs."""
        graph = self.file.subgraphs[0]
        inputs, outputs = (
            tuple(Argument(name, item.dtype, item.shape) for item, name in _tensors(graph, own))
            for own in names_of(self.file)
        )
        return Signature(inputs, outputs, {})

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
        name: str = "main",
    ) -> ModuleOp:
        """
        The module of `glow_high`, whose function is called `name`.

        Raises `GlowError` for a damaged file, and for operators that are not supported.
        """
        if dimensions or values:
            raise OptionError("a TensorFlow Lite model has no free dimensions", hint="its sizes are those of the file")
        try:
            return import_tflite(self.file, name=name)
        except GlowError as error:
            error.file = error.file or str(self.path)
            raise


def _tensors(graph: Subgraph, names: Names) -> list[tuple[Tensor, str]]:
    """Tensors with their names."""
    return [(graph.tensors[number], name) for number, name in names]
