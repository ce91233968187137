"""
Convolutions whose filters come with each call beside the same with constant ones, on one core.

    python benchmarks/run_time_weights.py
    python benchmarks/run_time_weights.py --rounds 25

Both sessions are called in turns; the figures are medians of CPU time, which others on the core do not change much. The
filters are packed in each call, by Winograd's algorithm where that pays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import add_core, machine, stay_on
from glow_mlir import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count


@dataclass(frozen=True)
class Layer:
    """A convolution with filters of 3x3 that keeps channels and size of its images."""

    channels: int
    size: int
    batch: int

    @property
    def name(self) -> str:
        """What it is, in words."""
        return f"3x3 {self.channels}->{self.channels} @{self.size}, batch {self.batch}"

    def arrays(self) -> dict[str, np.ndarray]:
        """Image and filters."""
        random = np.random.default_rng(0)
        shapes = {"x": (self.batch, self.channels, self.size, self.size), "w": (self.channels, self.channels, 3, 3)}
        return {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}

    def model(self, constants: Sequence[str]) -> onnx.ModelProto:
        """The layer as an ONNX model, some of whose operands are constants."""
        arrays = self.arrays()
        graph = helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)],
            "layer",
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
                for name, array in arrays.items()
                if name not in constants
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, arrays["x"].shape)],
            [numpy_helper.from_array(arrays[name], name) for name in constants],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


LAYERS = [Layer(64, 56, 16), Layer(64, 16, 16), Layer(128, 28, 16), Layer(256, 14, 1)]
"""Layers of ResNet-50 and of a small image, with many images and with one."""


def measure(layer: Layer, rounds: int) -> list[float]:
    """The medians of the seconds of a call, with constant filters and with those of the call."""
    arrays = layer.arrays()
    calls: list[tuple[InferenceSession, dict[str, np.ndarray]]] = []
    for constants in (["w"], []):
        session = InferenceSession(layer.model(constants).SerializeToString(), cache=False)
        calls.append((session, {name: array for name, array in arrays.items() if name not in constants}))
    found: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for (session, feeds), seconds in zip(calls, found, strict=True):
            begin = time.process_time()
            session.run(None, feeds)
            seconds.append(time.process_time() - begin)
    return [float(np.median(seconds[1:])) for seconds in found]


def main() -> None:
    """Measure all layers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=count, default=15, help="calls of a layer (15)")
    add_core(parser)
    options = parser.parse_args()
    stay_on([options.core])
    print(f"{machine()}\n\n| layer | constant filters, ms | filters of the call, ms | ratio |\n|---|---|---|---|")
    for layer in LAYERS:
        constant, given = measure(layer, options.rounds)
        print(f"| {layer.name} | {constant * 1e3:.2f} | {given * 1e3:.2f} | {given / constant:.2f} |", flush=True)


if __name__ == "__main__":
    main()
