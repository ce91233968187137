"""Import of a TensorFlow Lite model into a function of `glow_high`."""

from __future__ import annotations

from importlib import import_module

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.shapes import tensor
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.module_builder import ModuleBuilder
from glow_mlir.frontends.tflite.file import OTHER_TYPES, Subgraph, Tensor, TfliteFile
from glow_mlir.frontends.tflite.names import names_of
from glow_mlir.frontends.tflite.node import IMPORTERS, TfliteNode

FAMILIES = ("activations", "data_movement", "elementwise", "images", "products", "quantization")
"""The modules with importers of operators."""


def import_tflite(model: TfliteFile, pool: ConstantPool | None = None) -> ModuleOp:
    """
    The module of a model: its first subgraph is the function `main`, and inputs and outputs are as in the file.

    Raises `UnsupportedError` with all operators that are not supported, and `ModelError` for a damaged file.
    """
    for family in FAMILIES:
        import_module(f"glow_mlir.frontends.tflite.operators.{family}")
    return _GraphImport(model, pool).run()


class _GraphImport:
    """The import of the first subgraph of a file."""

    def __init__(self, model: TfliteFile, pool: ConstantPool | None) -> None:
        self._graph: Subgraph = model.subgraphs[0]
        self._inputs, self._outputs = names_of(model)
        self._builder = ModuleBuilder(frozenset(self._outputs.values()), pool)
        self._tensors = dict(enumerate(self._graph.tensors))
        self._values: dict[int, SSAValue] = {}

    def run(self) -> ModuleOp:
        """Import operators in their order, and name what they lack."""
        types = {
            name: tensor(self._tensors[number].shape, ELEMENT_TYPES[_dtype(self._tensors[number], "an input")])
            for number, name in self._inputs.items()
        }
        given = self._builder.add_inputs(types, {})
        self._values.update({number: given[name] for number, name in self._inputs.items()})
        for operator in self._graph.operators:
            with self._builder.node_errors(operator.kind, operator.name):
                self._import(TfliteNode(self._builder, operator, self._tensors, self._values), operator.outputs)
        self._builder.problems.raise_all()
        for number, name in self._outputs.items():
            if number not in self._values:
                raise ModelError(f"output '{name}' is computed by no operator", hint="the file is cut off")
            self._builder.add_output(name, self._values[number])
        return self._builder.finish("main")

    def _import(self, node: TfliteNode, outputs: tuple[int, ...]) -> None:
        importer = IMPORTERS.get(node.kind)
        if importer is None:
            raise UnsupportedError(f"operator {node.kind} is not supported", node=node.name)
        if any(number >= 0 and self._is_missing(number) for number in node.operands):
            return  # An operator in front of it is not supported, and named.
        self._values[outputs[0]] = importer(node)

    def _is_missing(self, number: int) -> bool:
        return number not in self._values and self._tensors[number].values is None


def _dtype(item: Tensor, role: str) -> str:
    """The name of the dtype of a tensor that callers give or get."""
    if item.dtype in OTHER_TYPES:
        raise UnsupportedError(f"{role} of {item.dtype} is not supported", node=item.name)
    return item.dtype
