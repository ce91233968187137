"""Outputs of a graph: numeric tensors, and the Python form of all other values."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import onnx
from xdsl.ir import SSAValue

from glow_mlir.frontends.builder.module_builder import ModuleBuilder
from glow_mlir.frontends.onnx.values import (
    Maps,
    OptionalValue,
    Strings,
    TensorSequence,
    Value,
    type_of_value,
    type_words,
)
from glow_mlir.runtime.python_values import Form
from glow_mlir.support.dataclass import dataclass


@dataclass
class GraphOutputs:
    """Add outputs to a function, and describe their forms for `runtime.python_values`."""

    builder: ModuleBuilder
    described: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Name, type and form of each."""

    @property
    def are_tensors(self) -> bool:
        """Whether all outputs are numeric tensors."""
        return all("tensor" in item["form"] for item in self.described)

    def add(self, declared: onnx.ValueInfoProto, value: Value) -> None:
        """Add an output; the declaration has its name and possibly its type."""
        type_ = declared.type if declared.type.WhichOneof("value") is not None else type_of_value(value)
        form = self._form(declared.name, value)
        self.described.append({"name": declared.name, "type": type_words(type_), "form": form})

    def _form(self, name: str, value: Value) -> Form:
        match value:
            case Strings():
                return {"strings": self._saved(name, value.numbers)}
            case TensorSequence():
                return {
                    "sequence": [self._form(f"{name}.{position}", item) for position, item in enumerate(value.items)]
                }
            case OptionalValue():
                return {"none": True} if value.value is None else self._form(name, value.value)
            case Maps():
                return {"maps": self._saved(name, value.rows), "keys": list(value.keys)}
            case _:
                return {"tensor": self._saved(name, value)}

    def _saved(self, name: str, value: SSAValue) -> str:
        self.builder.add_output(name, value)
        return name
