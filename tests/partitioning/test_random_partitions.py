"""Random graphs, each operator on a random device: partitions and host programs mean, and run, the same."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from breadth import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Graph, graphs
from random_regions import region_inputs, region_program
from validation import Results, assert_same_results, run_all, validate
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from glow_mlir.backends.interface import get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DEVICE, DEVICES, DeviceAttr, DeviceSpec
from glow_mlir.dialects.glow_high.storage import GetOp, SaveOp
from glow_mlir.dialects.packages import SEVERAL_BACKENDS
from glow_mlir.dialects.target import Target
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import PLACED, STAGE
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.entries import entries_of
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.text import parse_module
from glow_mlir.partitioning.operators import Nodes

SLOW: dict[str, Any] = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
CONTEXT = new_context()
PARTITIONED = "partition,verify-partitioned"
HOST_PROGRAM = "glow-high-to-glow-low,insert-transfers,shorten-lifetimes,insert-events,verify-low,verify-host-program"


def place(graph: Graph, data: st.DataObject) -> None:
    """Give the module of a graph devices, and each operator one of them; state is on one."""
    module, draw = graph.module, data.draw
    devices = [
        DeviceSpec(f"interpreter:{number}", Target("interpreter"), own_memory=draw(st.booleans()))
        for number in range(draw(st.integers(1, 3)))
    ]
    module.attributes[DEVICES] = ArrayAttr([DeviceAttr(device) for device in devices])
    names = st.sampled_from([device.name for device in devices])
    storage, homes = Storage(module), dict[str, str]()
    for function in high_functions(module):
        nodes = Nodes(function, storage)
        for op in nodes.ops:
            chosen = draw(names)
            if isinstance(op, GetOp | SaveOp) and nodes.is_state(op):
                chosen = homes.setdefault(op.storage_name, chosen)
            op.attributes[DEVICE] = StringAttr(chosen)


@settings(max_examples=examples(40), **SLOW)
@given(graph=graphs(), data=st.data())
def test_partitions_mean_the_same(graph: Graph, data: st.DataObject) -> None:
    place(graph, data)
    validate(graph.module, f"{PARTITIONED},{HOST_PROGRAM}", graph.inputs, context=CONTEXT)


@settings(max_examples=examples(40), **SLOW)
@given(graph=graphs())
def test_shares_of_batches_mean_the_same(graph: Graph) -> None:
    devices = [DeviceSpec(f"interpreter:{number}", Target("interpreter")) for number in range(3)]
    graph.module.attributes[DEVICES] = ArrayAttr([DeviceAttr(device) for device in devices])
    with contextlib.suppress(UnsupportedError):  # Where samples are mixed, as chance often has it.
        validate(graph.module, "split-batch", graph.inputs, context=CONTEXT, rtol=1e-5, atol=1e-6)


@settings(max_examples=examples(15), **SLOW)
@given(seed=st.integers(0, 1 << 16), data=st.data())
def test_partitions_with_branches_and_loops_mean_the_same(seed: int, data: st.DataObject) -> None:
    graph = Graph(region_program(seed), region_inputs(seed)[0])
    place(graph, data)
    validate(graph.module, f"{PARTITIONED},{HOST_PROGRAM}", graph.inputs, context=CONTEXT)


@settings(max_examples=examples(25), **SLOW)
@given(graph=graphs(), data=st.data())
def test_partitions_run_the_same(graph: Graph, data: st.DataObject) -> None:
    place(graph, data)
    module = graph.module
    expected = run_all(module, graph.inputs)
    module.attributes[STAGE] = StringAttr(PLACED.name)
    executable = get_backend(SEVERAL_BACKENDS).load(Compilation(module).artifact(), 1)
    found: Results = {}
    for function in entries_of(module):
        entry, symbols = executable.load(function.sym_name.data), function.binding_names
        by_role = {
            role: {item.name: name for name, item in zip(symbols, entry.bindings, strict=True) if item.role == role}
            for role in ("input", "state", "output")
        }
        given_ = {name: graph.inputs[symbol] for name, symbol in by_role["state"].items() if symbol in graph.inputs}
        executable.state.set(given_)
        outputs = entry.run({name: graph.inputs[symbol] for name, symbol in by_role["input"].items()})
        state = executable.state.get(list(by_role["state"]))
        written = {**by_role["output"], **by_role["state"]}
        found[function.sym_name.data] = {written[name]: array for name, array in {**outputs, **state}.items()}
    assert_same_results(found, expected)


@pytest.mark.parametrize("workers", [4])
def test_calls_at_once_do_not_meet(workers: int) -> None:
    """Several threads are in one host program, whose buffers are those of a call."""
    text = """
builtin.module attributes {glow.devices = [
  #glow.device<"interpreter:0", #glow.target<backend = "interpreter">>,
  #glow.device<"interpreter:1", #glow.target<backend = "interpreter">, own_memory>
]} {
  glow_high.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %a = glow_high.exp %x {glow.device = "interpreter:0"} : tensor<64xf32>
    %b = glow_high.tanh %a {glow.device = "interpreter:1"} : tensor<64xf32>
    %c = glow_high.add %b, %a {glow.device = "interpreter:0"} : tensor<64xf32>
    glow_high.return %c
  }
}
"""
    module = parse_module(text, CONTEXT)
    module.attributes[STAGE] = StringAttr(PLACED.name)
    entry = get_backend(SEVERAL_BACKENDS).load(Compilation(module).artifact(), 1).entry()

    def call(number: int) -> np.ndarray:
        return entry.run({"x": np.full(64, number / 50, np.float32)})["result"]

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(call, range(50)))
    values = np.arange(50, dtype=np.float32)[:, None] / np.float32(50) * np.ones((1, 64), np.float32)
    np.testing.assert_allclose(np.array(found), np.tanh(np.exp(values)) + np.exp(values), rtol=1e-6)
