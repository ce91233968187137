"""The state of the import of one ONNX model, shared by all of its graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

import onnx
from xdsl.dialects.builtin import LocationAttr

from glow_mlir.frontends.builder.module_builder import ModuleBuilder
from glow_mlir.frontends.onnx.inconsistencies import Inconsistencies
from glow_mlir.frontends.onnx.models.functions import find_importer
from glow_mlir.frontends.onnx.models.sparse import Initializer, dense_array
from glow_mlir.frontends.onnx.models.tensors import Tensors
from glow_mlir.frontends.onnx.models.types import element_of_onnx
from glow_mlir.frontends.onnx.values import Strings, Value
from glow_mlir.runtime.string_table import StringTable
from glow_mlir.support.dataclass import dataclass


@dataclass
class ModelImport:
    """The module under construction, the model's tensors and strings, and its inconsistencies."""

    builder: ModuleBuilder
    tensors: Tensors = field(default_factory=Tensors)
    state: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """The initializers that are state, and whether each is trainable."""
    inconsistencies: Inconsistencies = field(default_factory=Inconsistencies)
    """Faults of the model that do not prevent the import."""
    importer_of: Callable[[str, str, int], Callable[..., Any] | None] = field(
        default_factory=lambda: cache(find_importer)
    )
    """`find_importer`, cached for this model because it searches all importers."""

    strings: StringTable = field(default_factory=StringTable)
    """Numbers for all strings of the model."""

    def initializer(self, name: str, proto: Initializer, location: LocationAttr) -> Value:
        """Emit an initializer as a constant or as state."""
        what = f"initializer '{name}'"
        if isinstance(proto, onnx.TensorProto) and proto.data_type == onnx.TensorProto.STRING:
            numbers = self.strings.numbers(self.tensors.array(proto, what), what)
            return Strings(self.builder.constant(numbers, name, location))
        if isinstance(proto, onnx.SparseTensorProto):
            return self.builder.constant(dense_array(proto, self.tensors, what), name, location)
        element_of_onnx(proto.data_type, what)
        if name in self.state:
            return self.builder.add_state(name, self.tensors.array(proto, what), self.state[name])
        return self.builder.constant(self.tensors.array(proto, what), proto.name, location)
