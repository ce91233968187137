"""
Few rows through a multilayer perceptron, 784-512-256-10 unless told otherwise: calls beside those of ONNX Runtime.

    python benchmarks/multilayer_perceptron.py
    python benchmarks/multilayer_perceptron.py --rows 8 64 --widths 768 3072 768 --softmax

Both take turns, in one process and on one core, with `io_binding` and with `run`. A round takes the shortest of some
calls; times are the least of all rounds, ratios the median of the rounds. The peak is what multiply-adds on registers
alone reach. Rows are samples, which no kernel combines, so that there is no algorithm with fewer multiply-adds: *at the
peak* is the ratio of kernels that take the time of these alone, in a call that takes none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import add_core, machine, stay_on
from contest.probe import Probe
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

Calls = Mapping[str, Callable[[], Any]]
"""What is timed, by name."""

SECONDS = 2e-3
"""About how long the calls of one engine in one round take."""


def perceptron(rows: int, widths: Sequence[int], softmax: bool) -> onnx.ModelProto:
    """Layers with biases and ReLU in between, for so many samples of the first width."""
    random, value = np.random.default_rng(0), "x"
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for layer, (depth, columns) in enumerate(pairwise(widths)):
        matrix = random.standard_normal((depth, columns), np.float32) / np.float32(depth**0.5)
        bias = random.standard_normal(columns, np.float32)
        weights += [numpy_helper.from_array(matrix, f"w{layer}"), numpy_helper.from_array(bias, f"b{layer}")]
        if layer:
            nodes.append(helper.make_node("Relu", [value], [f"r{layer}"]))
            value = f"r{layer}"
        nodes.append(helper.make_node("Gemm", [value, f"w{layer}", f"b{layer}"], [f"y{layer}"]))
        value = f"y{layer}"
    if softmax:
        nodes.append(helper.make_node("Softmax", [value], ["probabilities"]))
        value = "probabilities"
    given, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, width])
        for name, width in (("x", widths[0]), (value, widths[-1]))
    )
    graph = helper.make_graph(nodes, "perceptron", [given], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def calls_of(session: Any, inputs: np.ndarray, outputs: np.ndarray) -> Calls:
    """The two ways to call a session of either engine; the bound one writes `outputs`."""
    binding, (output,) = session.io_binding(), session.get_outputs()
    binding.bind_cpu_input("x", inputs)
    binding.bind_output(output.name, "cpu", 0, np.float32, outputs.shape, outputs.ctypes.data)
    return {
        "bound": lambda: session.run_with_iobinding(binding),
        "run": lambda: session.run(None, {"x": inputs}),
    }


def shortest(call: Callable[[], Any], calls: int) -> float:
    """Seconds of the shortest of some calls, after one that fills the caches."""
    call()
    found: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def measure(model: onnx.ModelProto, rows: int, widths: Sequence[int], rounds: int, calls: int) -> dict[str, Any]:
    """Seconds of each round, by engine and way to call it; checks that both compute the same."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    data = model.SerializeToString()
    sessions = {
        "ours": InferenceSession(data, threads=1),
        "theirs": runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"]),
    }
    inputs = np.random.default_rng(1).standard_normal((rows, widths[0]), np.float32)
    results = {name: np.empty((rows, widths[-1]), np.float32) for name in sessions}
    ways = {name: calls_of(session, inputs, results[name]) for name, session in sessions.items()}
    found: dict[str, Any] = {way: {name: [] for name in sessions} for way in ("bound", "run")}
    for _ in range(rounds):
        for way, times in found.items():
            for name in sessions:
                times[name].append(shortest(ways[name][way], calls))
    np.testing.assert_allclose(results["ours"], results["theirs"], rtol=1e-3, atol=1e-4)
    return found


def ratio(times: Mapping[str, Sequence[float]]) -> float:
    """Their time over ours: the median of the rounds."""
    return median(theirs / ours for ours, theirs in zip(times["ours"], times["theirs"], strict=True))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    parser.add_argument("--rows", nargs="+", type=count, default=defaults, help="samples of an inference")
    parser.add_argument("--widths", nargs="+", type=count, default=[784, 512, 256, 10], help="of input and layers")
    parser.add_argument("--softmax", action="store_true", help="with a softmax at the end")
    parser.add_argument("--rounds", type=count, default=60, help="rounds of timing (60)")
    add_core(parser)
    options = parser.parse_args()
    if len(options.widths) < 2:
        parser.error("--widths are those of the input and of one layer or more")
    cores = [options.core]
    stay_on(cores)
    probe = Probe(cores)
    products = sum(depth * columns for depth, columns in pairwise(options.widths))
    ratios: list[tuple[float, float, float]] = []
    lines: list[str] = []
    for rows in options.rows:
        probe.measure()
        calls = max(3, int(SECONDS * probe.best / (2 * rows * products)))
        model = perceptron(rows, options.widths, options.softmax)
        found = measure(model, rows, options.widths, options.rounds, calls)
        flops = 2 * rows * products
        least = {way: {name: min(times) for name, times in engines.items()} for way, engines in found.items()}
        share = {name: f"{flops / seconds / probe.best:.0%}" for name, seconds in least["bound"].items()}
        ratios.append((ratio(found["bound"]), ratio(found["run"]), least["bound"]["theirs"] * probe.best / flops))
        times = " | ".join(f"{1e6 * least[way][name]:.1f}" for way in found for name in ("ours", "theirs"))
        bound, run, most = (f"{value:.2f}" for value in ratios[-1])
        lines.append(f"| {rows} | {times} | {share['ours']} | {share['theirs']} | {bound} | {run} | {most} |")
    print(f"{machine()}, {options.rounds} rounds, µs of a call; peak {probe.best / 1e9:.0f} GFLOP/s\n")
    print(
        "| rows | bound: ours | ONNX Runtime | `run`: ours | ONNX Runtime | share of the peak: ours | ONNX Runtime",
        end="",
    )
    print(" | ratio, bound | ratio, `run` | at the peak |")
    print("|" + "---|" * 10)
    print("\n".join(lines))
    means = " | ".join(f"{geometric_mean(column):.2f}" for column in zip(*ratios, strict=True))
    print(f"| geometric mean | | | | | | | {means} |")


if __name__ == "__main__":
    main()
