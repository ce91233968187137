"""
Weights of a network from its graph of ONNX, by the names that they have in PyTorch.

Exporters keep the names of most parameters. Matrices of products are transposed and renamed, but the nodes that
multiply by them are named after the modules that they were in: `/model/decoder/layers.0/fc1/MatMul` has the weight of
`model.decoder.layers.0.fc1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.external import external_files
from glow_mlir.frontends.onnx.importer import Model, open_model
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.traversal import all_graphs, all_nodes

QUANTIZED = ("Quantize", "Integer", "QLinear")
"""What operators of quantized graphs have in their names."""

_MERGED = re.compile(r"_merged_\d+$")
"""What optimum appends to names of initializers where it merges two graphs into the branches of one."""

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


def named_weights(path: Path, part: str) -> tuple[Mapping[str, np.ndarray], tuple[Path, ...]]:
    """
    The weights of the `encoder` or the `decoder`, whose graph a file has, as `model.encoder.…` or `model.decoder.…`.

    Also the files that they are in: that of the graph, and those that it names.

    Raises the errors of `open_model`, and `UnsupportedError` for graphs that are quantized, have operators of a domain
    other than ONNX's, or matrices that no name tells.
    """
    model = open_model(path)
    try:
        found = {_canonical(name, part): array for name, array in _weights(model, part)}
        return found, (path, *(path.parent / name for name in external_files(model)))
    except UnsupportedError as error:
        error.file = error.file or str(path)
        raise


def _canonical(name: str, part: str) -> str:
    """The name in a checkpoint of what is called `name` in a graph, whose modules may be inside others."""
    name = _MERGED.sub("", name)
    _, is_inside, own = name.rpartition(f"{part}.")
    if is_inside:
        return f"model.{part}.{own}"
    head = name.rfind("proj_out.")
    return f"model.{part}.{name}" if head < 0 else name[head:]


def _weights(model: Model, part: str) -> Iterator[tuple[str, np.ndarray]]:
    """Names with dots and arrays."""
    protos = {
        each.name: each
        for graph in all_graphs(model.proto.graph)
        for each in graph.initializer
        if each.data_type in _FLOATS
    }

    def array(name: str) -> np.ndarray:
        return model.tensors.array(protos[name], f"initializer '{name}'")

    for name in protos:
        yield name, array(name)
    for node in all_nodes(model.proto.graph.node):
        _check(node)
        scope = node.name.strip("/").replace("/", ".").rpartition(".")[0]
        constants = [name for name in node.input if name in protos]
        if node.op_type == "Identity" and constants:
            # One initializer stands for equal ones.
            yield node.output[0], array(constants[0])
        elif node.op_type in ("MatMul", "Gemm") and node.input[1] in constants:
            if not scope:
                hint = "export it with optimum-cli export onnx, without optimization"
                raise UnsupportedError("no name tells which matrix this is", node=node.name, hint=hint)
            is_turned = any(each.name == "transB" and each.i for each in node.attribute)
            weight = array(node.input[1])
            yield f"{scope}.weight", weight if is_turned else weight.T
        elif node.op_type == "Add" and constants and len(protos[constants[0]].dims) == 2 and scope in ("", part):
            yield f"{part}.embed_positions.weight", array(constants[0])


def _check(node: onnx.NodeProto) -> None:
    """Raise `UnsupportedError` for an operator that no export of a plain network has."""
    hint = "export it with optimum-cli export onnx, without optimization or quantization"
    if any(word in node.op_type for word in QUANTIZED):
        raise UnsupportedError(f"quantized graphs are not supported: {node.op_type}", node=node.name, hint=hint)
    if plain_domain(node.domain):
        raise UnsupportedError(f"{node.domain}.{node.op_type} is not supported here", node=node.name, hint=hint)
