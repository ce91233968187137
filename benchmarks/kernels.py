"""
Speed of single kernels on warm data, as a share of the core's peak in products of a precision.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --accuracy default --rounds 15 --only 3x3
    python benchmarks/kernels.py --precision int8

With the accuracy `strict`, the default here, every kernel takes the plain number of multiply-adds, so that the share
tells how well it is made; fewer multiply-adds, by Winograd's and Strassen's algorithms, show as more than 100 %. The
peak is probed before and behind each round, and what was disturbed is measured again.
"""

from __future__ import annotations

import argparse
import math
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
from contest.probe import PRECISIONS, Probe
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

CALLS = 25
"""Calls of a round; the fastest counts."""

QUIET = 0.97
"""Share of the best probe below which a round does not count."""


@dataclass(frozen=True)
class Layer:
    """A convolution, as filters, kernel, stride, channels, groups and size of the output, or a product of matrices."""

    family: str
    filters: int
    channels: int
    size: int
    kernel: int = 1
    stride: int = 1
    groups: int = 1
    matmul: bool = False

    @property
    def name(self) -> str:
        """What it is, in words."""
        if self.matmul:
            return f"{self.size}x{self.channels}x{self.filters}"
        step = f"/{self.stride}" if self.stride > 1 else ""
        channels = f"{self.filters}" if self.groups > 1 else f"{self.channels}->{self.filters}"
        return f"{self.kernel}x{self.kernel}{step} {channels} @{self.size}"

    @property
    def flops(self) -> int:
        """Operations, a multiply-add as two."""
        rows = self.size if self.matmul else self.size**2
        return 2 * rows * self.filters * self.channels // self.groups * self.kernel**2

    def model(self, codes: bool = False) -> onnx.ModelProto:
        """The layer as an ONNX model, of floats or of codes, with a scale for each channel of the weights."""
        random = np.random.default_rng(0)
        depth = self.channels // self.groups
        if self.matmul:
            given, result = [self.size, self.channels], [self.size, self.filters]
            shape = [self.channels, self.filters]
            node = helper.make_node("MatMul", ["x", "w"], ["y"])
        else:
            extent = self.size * self.stride
            given, result = [1, self.channels, extent, extent], [1, self.filters, self.size, self.size]
            shape = [self.filters, depth, self.kernel, self.kernel]
            pads = [(self.kernel - 1) // 2] * 2 + [(self.kernel - self.stride + 1) // 2] * 2
            node = helper.make_node(
                *("Conv", ["x", "w"], ["y"]), strides=[self.stride] * 2, group=self.groups, pads=pads
            )
        weights = (random.standard_normal(shape) / math.sqrt(depth * self.kernel**2)).astype(np.float32)
        constants: dict[str, np.ndarray] = {"w": weights}
        nodes, element = [node], TensorProto.FLOAT
        if codes:
            axis, element = int(self.matmul), TensorProto.UINT8
            largest = np.abs(weights).max(axis=tuple(i for i in range(len(shape)) if i != axis), keepdims=True)
            node.input[:], node.output[:] = ["number", "weight"], ["sum"]
            nodes = [
                helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["number"]),
                helper.make_node("DequantizeLinear", ["w", "scales"], ["weight"], axis=axis),
                node,
                helper.make_node("QuantizeLinear", ["sum", "scale", "zero"], ["y"]),
            ]
            constants = {
                "w": np.round(weights / largest * 127).astype(np.int8),
                "scales": (largest / 127).reshape(-1).astype(np.float32),
                "scale": np.array(0.03, np.float32),
                "zero": np.array(128, np.uint8),
            }
        graph = helper.make_graph(
            nodes,
            "layer",
            [helper.make_tensor_value_info("x", element, given)],
            [helper.make_tensor_value_info("y", element, result)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _resnet(kernel: int, sizes: Sequence[tuple[int, int, int]], stride: int = 1) -> list[Layer]:
    family = f"{kernel}x{kernel}" + ("/2" if stride > 1 else "")
    return [Layer(family, filters, channels, size, kernel, stride) for channels, filters, size in sizes]


LAYERS = [
    Layer("stem", 64, 3, 112, 7, 2),
    *_resnet(1, [(64, 64, 56), (64, 256, 56), (256, 64, 56), (256, 128, 56), (128, 512, 28), (512, 128, 28)]),
    *_resnet(1, [(512, 256, 28), (256, 1024, 14), (1024, 256, 14), (1024, 512, 14), (512, 2048, 7), (2048, 512, 7)]),
    *_resnet(3, [(64, 64, 56), (128, 128, 28), (256, 256, 14), (512, 512, 7)]),
    *_resnet(1, [(256, 512, 28), (512, 1024, 14), (1024, 2048, 7)], stride=2),
    *_resnet(3, [(128, 128, 28), (256, 256, 14), (512, 512, 7)], stride=2),
    *(
        Layer("GEMM", n, k, 128, matmul=True)
        for k, n in [(768, 768), (768, 3072), (3072, 768), (384, 384), (384, 1536)]
    ),
    *(
        Layer("depthwise 3x3", channels, channels, size, 3, stride, channels)
        for channels, size, stride in [
            *[(32, 112, 1), (96, 56, 2), (144, 56, 1), (144, 28, 2), (192, 28, 1)],
            *[(192, 14, 2), (384, 14, 1), (576, 14, 1), (576, 7, 2), (960, 7, 1)],
        ]
    ),
]
"""The products of ResNet-50 and of transformers of 384 and 768 channels, and MobileNetV2's depthwise convolutions."""


@dataclass(frozen=True)
class Figure:
    """What a layer reached: its kernel, seconds, and share of the peak."""

    layer: Layer
    kernel: str
    seconds: float
    share: float


def cycles_a_second() -> float:
    """The rate of the cycle counter that profiles are in, measured on an empty model."""
    model = Layer("", 512, 512, 256, matmul=True).model()
    session = InferenceSession(model.SerializeToString(), profile=True, cache=False)
    given = {"x": np.ones([256, 512], np.float32)}
    rates: list[float] = []
    for _ in range(50):
        begin = time.perf_counter()
        session.run(None, given)
        seconds = time.perf_counter() - begin
        stamps = session.machine_entry.stamps
        rates.append(float(stamps[-1] - stamps[0]) / seconds)
    return max(rates)


def measure(layer: Layer, probe: Probe, rounds: int, accuracy: str, precision: str, rate: float) -> Figure:
    """The median of the rounds, each the fastest of some calls."""
    codes = precision == "int8"
    model, floats = layer.model(codes), "f32" if codes else precision
    session = InferenceSession(
        model.SerializeToString(), profile=True, cache=False, accuracy=accuracy, precision=floats
    )
    steps = session.machine_entry.entry.steps
    (index,) = [i for i, step in enumerate(steps) if step.kind in ("conv", "matmul")]
    (argument,) = session.get_inputs()
    numbers = np.random.default_rng(1).standard_normal(argument.shape)
    given = {argument.name: (numbers * 32 + 128).clip(0, 255).astype(np.uint8) if codes else numbers.astype(np.float32)}
    found: list[tuple[float, float]] = []
    while len(found) < rounds:
        peak = probe.measure()
        cycles: list[int] = []
        for _ in range(CALLS):
            session.run(None, given)
            stamps = session.machine_entry.stamps
            cycles.append(int(stamps[index + 1] - stamps[index]))
        peak = min(peak, probe.measure())
        if peak >= QUIET * probe.best:
            seconds = min(cycles) / rate
            found.append((seconds, layer.flops / seconds / peak))
    seconds, share = np.median(np.array(found), axis=0)
    return Figure(layer, steps[index].kernel, float(seconds), float(share))


def table(figures: Sequence[Figure]) -> str:
    """The figures, and the geometric mean of each family."""
    lines = ["| layer | kernel | µs | of the peak |", "|---|---|---|---|"]
    families: dict[str, list[float]] = {}
    for figure in figures:
        families.setdefault(figure.layer.family, []).append(figure.share)
        lines.append(f"| {figure.layer.name} | `{figure.kernel}` | {figure.seconds * 1e6:.1f} | {figure.share:.0%} |")
    lines += ["", "| family | geometric mean | lowest |", "|---|---|---|"]
    families["all but depthwise"] = [f.share for f in figures if f.layer.groups == 1]
    for family, shares in families.items():
        if shares:
            lines.append(f"| {family} | {math.exp(np.mean(np.log(shares))):.1%} | {min(shares):.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all layers and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accuracy", choices=("default", "strict"), default="strict")
    parser.add_argument("--precision", choices=tuple(PRECISIONS), default="f32", help="what is multiplied (f32)")
    parser.add_argument("--rounds", type=count, default=9, help="rounds of a layer (9)")
    add_core(parser)
    parser.add_argument("--only", default="", help="families to measure, those whose name has this")
    options = parser.parse_args()
    cores = [options.core]
    stay_on(cores)
    probe, rate = Probe(cores, options.precision), cycles_a_second()
    figures: list[Figure] = []
    for layer in LAYERS:
        if options.only in layer.family:
            print(layer.name, file=sys.stderr)
            figures.append(measure(layer, probe, options.rounds, options.accuracy, options.precision, rate))
    peak = f"peak {probe.best / 1e9:.0f} G{'' if options.precision == 'int8' else 'FL'}OP/s in {options.precision}"
    print(f"{machine()}: {peak}, accuracy {options.accuracy}\n\n{table(figures)}", end="")


if __name__ == "__main__":
    main()
