"""
One token of a decoder whose weights are codes, beside ONNX Runtime and beside reading as many bytes.

    python benchmarks/weights.py
    python benchmarks/weights.py --threads 2 --layers 4 --width 768 --rounds 5

The decoder is like GPT-2, with MatMulNBits for all products; with the size that is the default here, codes of 4 bits
take 300 MB, far more than caches hold. Reading is a loop that we compile, which adds vectors, over memory as large as
codes and scales. All are measured in turns in one process, and the fastest call counts.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from decoder import decoder, narrow_product
from models import random_inputs

from contest.machine import add_core, cores_from, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i32, i64, ptr, vector
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.runtime.loader import Library
from glow_mlir.tools.arguments.bounded_numbers import count

CASES = ((4, 0), (4, 4), (8, 4))
"""Bits of codes, and accuracy levels: ONNX Runtime has no fast products of codes of 8 bits but at level 4."""

VECTORS = 8
"""Vectors that a turn of the loop reads."""


def reading_loop() -> Callable[[int, int, int], None]:
    """A function of the address of the result, that of memory, and a number of turns."""
    target = host_target()
    module = ModuleBuilder(target)
    lanes = target.vector_width(i32)
    type_, ahead = vector(i32, lanes), kernel_costs(target).fetched_bytes // 4
    with define_function(module, "read", [ptr, ptr, i64]) as (b, (out, source, turns)):
        start = [b.constant(0, type_)] * VECTORS
        with b.loop(0, turns, 1, carried=[*start, source]) as loop:
            *sums, place = loop.values
            places = [place.at(number * lanes, i32) for number in range(VECTORS)]
            for address in places:
                b.prefetch(address.at(ahead, i32))
            loop.set(
                *(x + address.load(type_) for x, address in zip(sums, places, strict=True)), places[-1].at(lanes, i32)
            )
        total = loop.results[0]
        for value in loop.results[1:-1]:
            total = total + value
        out.store(total)
    library = Library(compile_text(emit_module(flattened(module.module)), target))
    return library.function("read", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None)


class Reader:
    """Reads memory of some size, in as many equal parts as there are threads."""

    def __init__(self, in_bytes: int, threads: int) -> None:
        self._loop, self._pool = reading_loop(), ThreadPoolExecutor(threads)
        step = host_target().vector_width(i32) * 4 * VECTORS
        self._turns = in_bytes // threads // step
        self._parts = [np.ones(self._turns * step, np.uint8) for _ in range(threads)]
        self._sums = [np.zeros(step, np.uint8) for _ in range(threads)]

    def __call__(self) -> None:
        pairs = [(total.ctypes.data, part.ctypes.data) for total, part in zip(self._sums, self._parts, strict=True)]
        if len(pairs) == 1:
            self._read(pairs[0])
        else:
            list(self._pool.map(self._read, pairs))

    def _read(self, places: tuple[int, int]) -> None:
        """Read a part; its sum and it are at these addresses."""
        self._loop(*places, self._turns)


@dataclass(frozen=True)
class Figure:
    """Seconds of a token by each, and of reading `in_bytes`."""

    bits: int
    level: int
    in_bytes: int
    ours: float
    theirs: float
    reading: float

    def row(self) -> str:
        """The figure as a line of the table."""
        speed = self.in_bytes / self.ours / 1e9
        cells = [f"int{self.bits}, level {self.level}", f"{self.in_bytes / 1e6:.0f}", f"{self.ours * 1e3:.2f}"]
        cells += [f"{self.theirs * 1e3:.2f}", f"{self.theirs / self.ours:.2f}", f"{speed:.1f}"]
        return f"| {' | '.join([*cells, f'{self.reading / self.ours:.0%}'])} |"


def measure(model: onnx.ModelProto, threads: int, rounds: int) -> tuple[int, list[float]]:
    """Bytes of codes and scales, and the fastest calls of ours, theirs, and of reading these bytes."""
    inputs = random_inputs(model, np.random.default_rng(3))
    codes = {name for node in model.graph.node if node.op_type == "MatMulNBits" for name in node.input[1:3]}
    in_bytes = sum(len(tensor.raw_data) for tensor in model.graph.initializer if tensor.name in codes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.onnx"
        onnx.save(model, path)
        ours = InferenceSession(path, threads=threads, cache=False)
        runtime = cast(Any, onnxruntime)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        theirs = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    calls: list[Callable[[], object]] = [
        lambda: ours.run(None, inputs),
        lambda: theirs.run(None, inputs),
        Reader(in_bytes, threads),
    ]
    fastest = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            fastest[number] = min(fastest[number], time.perf_counter() - begin)
    return in_bytes, fastest


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=count, default=1, help="threads of a token (1)")
    add_core(parser, "the first core to run on")
    parser.add_argument("--rounds", type=count, default=20, help="calls of each (20)")
    parser.add_argument("--layers", type=count, default=20, help="layers of the decoder (20)")
    parser.add_argument("--width", type=count, default=1280, help="numbers of a token between layers, 64 for each head")
    options = parser.parse_args()
    try:
        stay_on(cores_from(options.core, options.threads))
    except ValueError as error:
        parser.error(str(error))
    print(f"{machine()}, {options.threads} threads\n")
    print("| weights | MB | glow-mlir ms | ONNX Runtime ms | ratio | GB/s | of reading |")
    print("|---|---|---|---|---|---|---|")
    for bits, level in CASES:
        sizes = {"layers": options.layers, "width": options.width, "heads": options.width // 64}
        model = decoder(narrow_product(bits, level=level), past=15, vocabulary=50304, **sizes)
        print(Figure(bits, level, *_flat(measure(model, options.threads, options.rounds))).row(), flush=True)


def _flat(found: tuple[int, list[float]]) -> tuple[int, float, float, float]:
    in_bytes, (ours, theirs, reading) = found
    return in_bytes, ours, theirs, reading


if __name__ == "__main__":
    main()
