"""Regions of bundles begin at lines where there are caches, and take no more than elements do where there are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from in_process import run_tool
from onnx import TensorProto, helper

from glow_mlir.tools import glow_compile

WITHOUT_CACHES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33")


@pytest.mark.parametrize("machine", [*WITHOUT_CACHES, "cortex-m7", "cortex-m55", "riscv32", "avx2"])
def test_small_buffers_take_little_where_there_are_no_lines(machine: str, tmp_path: Path) -> None:
    """An input and an output of 16 and 8 bytes."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name, size in (("x", 4), ("y", 2)))
    nodes = [helper.make_node("Slice", ["x", "zero", "two"], ["part"]), helper.make_node("Exp", ["part"], ["y"])]
    numbers = [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in (("zero", 0), ("two", 2))]
    graph = helper.make_graph(nodes, "small", [x], [y], numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (tmp_path / "small.onnx").write_bytes(model.SerializeToString())
    done = run_tool(glow_compile.main, ["small.onnx", "--target", machine, "-o", "b"], directory=tmp_path)
    assert (done.code, done.stderr) == (0, b"")
    header = (tmp_path / "b" / "small.h").read_text(encoding="utf-8")
    alignment, mutables = (
        int(value) for name in ("ALIGNMENT", "MUTABLES_SIZE") for value in re.findall(rf"SMALL_{name} (\d+)", header)
    )
    assert alignment == (8 if machine in WITHOUT_CACHES else 64)
    assert mutables == sum(-(-size // alignment) * alignment for size in (16, 8))
