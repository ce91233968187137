"""`--check` of TensorFlow Lite models: all their tensors, and those of LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.errors import OptionError
from glow_mlir.frontends.tflite.file import OTHER_TYPES
from glow_mlir.frontends.tflite.importer import import_tflite
from glow_mlir.frontends.tflite.model import TfliteModel
from glow_mlir.frontends.tflite.names import Entry, entries_of
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.optional_packages import imported
from glow_mlir.support.symbols import GivenDimension


@dataclass(frozen=True)
class ExposedTensors:
    """A module of a model whose further outputs are the tensors `numbers`, and name and kind of the layer of each."""

    module: ModuleOp
    layers: Mapping[str, tuple[str, str]]
    numbers: Sequence[int]
    entry: Entry


def exposed_tensors(
    model: TfliteModel, dimensions: Mapping[str, GivenDimension], values: Mapping[str, np.ndarray]
) -> ExposedTensors:
    """
    A model with all tensors that its operators compute as outputs.

    Raises `GlowError` for a model that cannot be imported, and `OptionError` for one of several entries.
    """
    entries = entries_of(model.file)
    if len(entries) > 1:
        hint = "--check takes models of one entry"
        raise OptionError(f"the model has {len(entries)} entries", file=str(model), hint=hint)
    graph = model.file.subgraphs[0]
    own = {number for number, _ in entries[0].outputs}
    made = {
        number: (operator.name, operator.kind)
        for operator in graph.operators
        for number in operator.outputs
        if number >= 0 and number not in own and graph.tensors[number].dtype not in OTHER_TYPES
    }
    module = import_tflite(model.file, tensors=[*made], dimensions=dimensions, values=values)
    return ExposedTensors(module, {f"tensor {number}": layer for number, layer in made.items()}, [*made], entries[0])


def litert() -> Any:
    """LiteRT's module of interpreters; raises `OptionError` if it is not installed."""
    return imported("ai_edge_litert.interpreter", "litert", "--check litert needs ai-edge-litert")


def run_litert(model: TfliteModel, exposed: ExposedTensors, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Outputs and tensors of LiteRT's reference kernels, in the order and under the names of the module's.

    Raises `OptionError` if it refuses the model.
    """
    package = litert()
    content = model.source if isinstance(model.source, bytes) else None
    try:
        theirs: Any = package.Interpreter(
            None if content is not None else str(model.source),
            model_content=content,
            experimental_op_resolver_type=package.OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
        )
        for number, name in exposed.entry.inputs:
            theirs.resize_tensor_input(number, inputs[name].shape)
        theirs.allocate_tensors()
        for number, name in exposed.entry.inputs:
            theirs.set_tensor(number, inputs[name])
        theirs.invoke()
        own = {name: theirs.get_tensor(number) for number, name in exposed.entry.outputs}
        return own | {f"tensor {number}": theirs.get_tensor(number) for number in exposed.numbers}
    except (RuntimeError, ValueError) as error:
        raise OptionError(f"LiteRT refuses the model: {' '.join(str(error).split())}", file=str(model)) from error
