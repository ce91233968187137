"""Values that no memory holds are one clean error that names a node or an output, and a size."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import little_memory
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model

HUGE = 1 << 34


def model(*nodes: tuple[str, str], **constants: Sequence[float] | float) -> onnx.ModelProto:
    """
    A model of the input `x` and those constants; each node is given with its operands, and makes `v0`, `v1`, …

    The last is the output.
    """
    made = [
        helper.make_node(kind, operands.split(), [f"v{place}"], f"node{place}")
        for place, (kind, operands) in enumerate(nodes)
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    weights = [
        numpy_helper.from_array(np.array(value, np.float32 if name == "ends" else np.int64), name)
        for name, value in constants.items()
    ]
    output = onnx.ValueInfoProto(name=f"v{len(made) - 1}")
    graph = helper.make_graph(made, "graph", [x], [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


MODELS: dict[str, tuple[onnx.ModelProto, str]] = {
    "constant": (model(("ConstantOfShape", "s"), s=[HUGE]), r"output 'v0', which is float32\[17179869184\]"),
    "copies": (model(("Tile", "x s"), s=[HUGE]), r"output 'v0', which is float32\[34359738368\]"),
    "border": (model(("Pad", "x s"), s=[0, HUGE]), r"output 'v0', which is float32\[17179869186\]"),
    "range": (model(("Range", "a b c"), a=0, b=HUGE, c=1), "node 'node0': Range: its results do not fit into memory"),
    "one-hot": (
        model(("Cast", "x"), ("OneHot", "v0 s ends"), s=HUGE, ends=[0.0, 1.0]),
        "node 'node1': OneHot: its results do not fit into memory",
    ),
    "activations": (
        model(("Expand", "x s"), ("CumSum", "v0 a"), ("ReduceSum", "v1"), s=[HUGE, 2], a=0),
        r"too little memory for \d{12} bytes of activations",
    ),
}
MODELS["one-hot"][0].graph.node[0].attribute.append(helper.make_attribute("to", TensorProto.INT64))


def run(backend: str, models: Sequence[onnx.ModelProto], folder: Path) -> list[str]:
    """What a process with little memory prints of these models."""
    files = [folder / f"{place}.onnx" for place in range(len(models))]
    for proto, file in zip(models, files, strict=True):
        onnx.save(proto, file)
    script = Path(little_memory.__file__)
    done = subprocess.run(
        [sys.executable, script, backend, *files], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.splitlines()


def test_machine_code_says_what_it_has_no_memory_for(tmp_path: Path) -> None:
    lines = run("cpu", [proto for proto, _ in MODELS.values()], tmp_path)
    assert len(lines) == len(MODELS)
    for line, (_, text) in zip(lines, MODELS.values(), strict=True):
        assert re.search(text, line), line
        assert re.match(r"(OutOfMemory|Model)Error ", line), line


def test_the_interpreter_and_passes_name_the_largest_value(tmp_path: Path) -> None:
    """The weights of a resized line are the largest thing that the lowering makes, its result the largest value."""
    resized = model(("Resize", "x roi ends s"), s=[1 << 31], roi=[0, 0], ends=[])
    del resized.graph.node[0].input[1:3]
    resized.graph.node[0].input[:] = ["x", "", "", "s"]
    for backend, proto in (("cpu", resized), ("interpreter", MODELS["copies"][0])):
        (line,) = run(backend, [proto], tmp_path)
        assert re.match(r"OutOfMemoryError .*node 'node0': there is too little memory .* takes \d+ bytes", line), line


@pytest.mark.parametrize("size", [1 << 45, 1 << 62])
@pytest.mark.parametrize(
    ("kind", "operands"), [("ConstantOfShape", "s"), ("Expand", "x t"), ("Tile", "x s"), ("Range", "a d c")]
)
def test_sizes_beyond_all_memory_are_refused_by_the_importer(kind: str, operands: str, size: int) -> None:
    """Also where their bytes are more than numbers of 64 bits count."""
    proto = model((kind, operands), s=[size], t=[size, 1], a=0, c=1, d=size)
    with pytest.raises(GlowError, match=r"node 'node0': .*(too large|do not fit into memory)"):
        import_model(proto)


def test_a_range_without_end_is_refused() -> None:
    proto = model(("Range", "a b c"))
    for name, value in (("a", -1e308), ("b", 1e308), ("c", 1e-308)):
        proto.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    with pytest.raises(
        GlowError, match="node 'node0': Range: from -1e\\+308 to 1e\\+308 by 1e-308 has no valid number"
    ):
        import_model(proto)
