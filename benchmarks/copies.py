"""
Speed of kernels that move elements, as a share of the speed at which numpy copies as many bytes.

    python benchmarks/copies.py
    python benchmarks/copies.py --size 16777216 --rounds 5 --only transpose

The bytes of a kernel are the mean of what it reads and what it writes. With the size that is the default here, all of
it stays in the second cache; 16777216 floats exceed the last one. Copies are measured in turn with the kernel.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from kernels import cycles_a_second
from onnx import helper, numpy_helper

from contest.machine import add_core, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

SECONDS = 0.02
"""How long a round calls the kernel and copies; the fastest call counts."""


@dataclass(frozen=True)
class Movement:
    """An ONNX node: inputs of floats by shape, constants, and attributes."""

    name: str
    operator: str
    inputs: Sequence[tuple[int, ...]]
    constants: Sequence[np.ndarray | None] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def model(self) -> onnx.ModelProto:
        """The node as an ONNX model."""
        given = [f"x{number}" for number in range(len(self.inputs))]
        known = [f"c{number}" if array is not None else "" for number, array in enumerate(self.constants)]
        node = helper.make_node(self.operator, [*given, *known], ["y"], **self.attributes)
        graph = helper.make_graph(
            [node],
            "movement",
            [
                helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
                for name, shape in zip(given, self.inputs, strict=True)
            ],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
            [
                numpy_helper.from_array(array, name)
                for name, array in zip(known, self.constants, strict=True)
                if array is not None
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)


def movements(size: int) -> list[Movement]:
    """Movements whose results have about `size` floats, which is a power of four."""
    side, pixels = math.isqrt(size), math.isqrt(size // 64)
    image, planes, half = (1, pixels, pixels, 64), (1, 64, pixels, pixels), pixels // 2
    rows = np.random.default_rng(0).permutation(size // 64)
    twice = np.array([1, 1, 2, 2], np.float32)
    transpose = [
        ((side, side), (1, 0)),
        ((side - 3, side - 5), (1, 0)),
        (planes, (0, 2, 3, 1)),
        (image, (0, 3, 1, 2)),
        ((size // 65536, 128, 8, 64), (0, 2, 1, 3)),
        ((size // 65536, 128, 8, 64), (0, 2, 3, 1)),
    ]
    return [
        *(
            Movement(f"transpose {'x'.join(map(str, shape))} by {order}", "Transpose", [shape], (), {"perm": order})
            for shape, order in transpose
        ),
        Movement("concat lines", "Concat", [(size // 128, 64)] * 2, (), {"axis": 1}),
        Movement("concat blocks", "Concat", [(side // 2, side)] * 2, (), {"axis": 0}),
        Movement("gather rows", "Gather", [(size // 64, 64)], [rows], {"axis": 0}),
        Movement("gather columns", "Gather", [(side, side)], [rows[rows < side]], {"axis": 1}),
        Movement("resize planes, nearest", "Resize", [(1, 64, half, half)], [None, twice], {"mode": "nearest"}),
        Movement("resize planes, linear", "Resize", [(1, 64, half, half)], [None, twice], {"mode": "linear"}),
        Movement("pad", "Pad", [planes], [np.array([0, 0, 1, 1, 0, 0, 1, 1])]),
    ]


def fastest(call: Callable[[], float]) -> float:
    """The least that a call gives, of those in a round."""
    end, best = time.perf_counter() + SECONDS, math.inf
    while best == math.inf or time.perf_counter() < end:
        best = min(best, call())
    return best


def measure(movement: Movement, rounds: int, rate: float) -> tuple[float, float]:
    """Median seconds of the rounds, and median share of the speed of a copy."""
    session = InferenceSession(movement.model().SerializeToString(), profile=True, cache=False)
    given = {f"x{i}": np.ones(shape, np.float32) for i, shape in enumerate(movement.inputs)}
    (result,) = session.run(None, given)
    source = np.ones((sum(x.nbytes for x in given.values()) + result.nbytes) // 2, np.uint8)
    target = np.ones_like(source)

    def run() -> float:
        session.run(None, given)
        stamps = session.machine_entry.stamps
        return float(stamps[-1] - stamps[0]) / rate

    def copy() -> float:
        begin = time.perf_counter()
        np.copyto(target, source)
        return time.perf_counter() - begin

    found = [(fastest(run), fastest(copy)) for _ in range(rounds)]
    return float(np.median([kernel for kernel, _ in found])), float(np.median([c / kernel for kernel, c in found]))


def main() -> None:
    """Measure all movements and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=count, default=1 << 16, help="floats of a result, a power of four (65536)")
    parser.add_argument("--rounds", type=count, default=5, help="rounds of a movement (5)")
    add_core(parser)
    parser.add_argument("--only", default="", help="movements to measure, those whose name has this")
    options = parser.parse_args()
    if options.size < 1 << 16 or math.isqrt(options.size) ** 2 != options.size or options.size & (options.size - 1):
        parser.error("the size is a power of four, 65536 at least")
    chosen = [movement for movement in movements(options.size) if options.only in movement.name]
    if options.rounds < 1 or not chosen:
        parser.error("there are 1 round and 1 movement at least")
    stay_on([options.core])
    rate = cycles_a_second()
    print(f"{machine()}: {options.size} floats\n\n| movement | µs | of a copy's speed |\n|---|---|---|")
    for movement in chosen:
        print(movement.name, file=sys.stderr)
        seconds, share = measure(movement, options.rounds, rate)
        print(f"| {movement.name} | {seconds * 1e6:.1f} | {share:.0%} |", flush=True)


if __name__ == "__main__":
    main()
