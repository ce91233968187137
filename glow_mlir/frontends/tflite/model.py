"""A TensorFlow Lite file as a model of sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from glow_mlir.errors import GlowError, ModelError, OptionError
from glow_mlir.frontends.tflite.file import Tensor, TfliteFile
from glow_mlir.frontends.tflite.names import Entry, entries_of
from glow_mlir.runtime.cache import ContentIndex
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class TfliteModel:
    """
    The file or the bytes of a model; `glow_mlir.InferenceSession` takes it.

    A file is mapped, so that it must not change while it is used.
    """

    source: Path | bytes

    def __reduce__(self) -> tuple[type[TfliteModel], tuple[Path | bytes]]:
        """Open the file again in another process."""
        return TfliteModel, (self.source,)

    def __str__(self) -> str:
        """Its file."""
        return "a TensorFlow Lite model in memory" if isinstance(self.source, bytes) else str(self.source)

    @cached_property
    def file(self) -> TfliteFile:
        """What the file has."""
        if isinstance(self.source, bytes):
            return TfliteFile.of(memoryview(self.source))
        return TfliteFile.open(self.source)

    @property
    def identity(self) -> str:
        """A digest of its content; raises `ModelError` for a file that cannot be read."""
        if isinstance(self.source, bytes):
            return f"tflite {hashlib.sha256(self.source).hexdigest()}"
        try:
            return f"tflite {ContentIndex().digest(self.source)}"
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}", file=str(self.source)) from error

    @cached_property
    def _entries(self) -> list[Entry]:
        return entries_of(self.file)

    @property
    def _has_fixed_sizes(self) -> bool:
        """Whether sizes are those of the file unless options say others: variables and several entries fix them."""
        graphs = self.file.subgraphs
        has_handles = any(operator.kind == "VAR_HANDLE" for graph in graphs for operator in graph.operators)
        has_states = any(item.is_variable for graph in graphs for item in graph.tensors)
        return len(self._entries) > 1 or has_handles or has_states

    def default_sizes(self) -> dict[str, int]:
        """Free dimension → its size in the file."""
        graph = self.file.subgraphs[self._entries[0].subgraph]
        return {
            f"{name}.{axis}": graph.tensors[number].shape[axis]
            for number, name in self._entries[0].inputs
            for axis in graph.tensors[number].free_axes
        }

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions, which consist of the input and the axis."""
        return [] if self._has_fixed_sizes else [*self.default_sizes()]

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """
        Inputs and outputs of the first entry; `dimensions` has sizes of free dimensions.

        Raises `OptionError` for those that it does not have, and for sizes that are none.
        """
        from glow_mlir.frontends.tflite.sizes import chosen_shapes

        entry = self._entries[0]
        graph = self.file.subgraphs[entry.subgraph]
        chosen_shapes(graph, entry.inputs, dimensions)
        inputs, outputs = (
            tuple(_argument(graph.tensors[number], name).sized(dimensions) for number, name in names)
            for names in (entry.inputs, entry.outputs)
        )
        return Signature(inputs, outputs, {})

    def described(self) -> dict[str, Any]:
        """What the file says of itself, named as in `ModelMetadata`."""
        from glow_mlir.frontends.tflite.metadata import metadata_of

        return metadata_of(self.file, self.source)

    def labels(self) -> list[str]:
        """The lines of the only file of labels in the archive behind the model; none without, or with several."""
        from glow_mlir.frontends.tflite.metadata import archived

        texts = [text for name, text in archived(self.file, self.source) if name.endswith(".txt")]
        return texts[0].splitlines() if len(texts) == 1 else []

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
        name: str = "main",
    ) -> ModuleOp:
        """
        The module of `glow_high`, whose function is called `name` if the file has one entry.

        Names of weights in it depend on their content, unless `by_content` is false, which reads no weights. Free
        dimensions that `dimensions` lack have the size of the file. Inputs in `values` become constants. Raises
        `GlowError` for a damaged file, for operators that are not supported, and for dimensions that do not fit.
        """
        from glow_mlir.frontends.builder.constant_pool import ConstantPool
        from glow_mlir.frontends.tflite.importer import import_tflite

        if (dimensions or values) and len(self._entries) > 1:
            reason = "sizes and values of inputs are those of one entry, and the file has several"
            raise OptionError(reason, hint=f"entries are {', '.join(item.name for item in self._entries)}")
        pool = None if by_content else ConstantPool()
        try:
            return import_tflite(self.file, pool, name=name, dimensions=dimensions, values=values)
        except GlowError as error:
            error.file = error.file or ("" if isinstance(self.source, bytes) else str(self.source))
            raise


def _argument(item: Tensor, name: str) -> Argument:
    return Argument(name, item.dtype, item.labelled(name))
