"""
Sizes that are known at run time only: one compilation beside those for each size, beside ONNX Runtime and OpenVINO.

    python benchmarks/run_time_sizes.py
    python benchmarks/run_time_sizes.py --rounds 30 --only encoder

An encoder takes one sequence of 8 to 384 tokens in random order, and ResNet-50 1 to 16 images. All take turns, in one
process and on one core. Results are compared before anything is measured. The first call installs OpenVINO in
`--folder`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import mean, median
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import bert_encoder, seeded_light_model

from contest.engines import ENGINES
from contest.environments import FOLDER, environment
from contest.machine import add_core, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """A model of free dimensions, their bounds, and the sizes that it is called with."""

    name: str
    model: onnx.ModelProto
    bounds: dict[str, tuple[int, int]]
    sizes: Sequence[dict[str, int]]
    inputs: Callable[[dict[str, int]], Arrays]


def encoder() -> Case:
    """MiniLM with random weights: one sequence of any length."""
    generator = np.random.default_rng(0)

    def inputs(sizes: dict[str, int]) -> Arrays:
        shape = (sizes["batch"], sizes["length"])
        return {"ids": generator.integers(0, 30522, shape), "mask": np.ones(shape, np.int64)}

    model = bert_encoder(layers=6, width=384, heads=12, length=512, vocabulary=30522, is_free=True)
    lengths = generator.permutation([8, 16, 32, 47, 64, 100, 128, 200, 256, 311, 384])
    sizes = [{"batch": 1, "length": int(length)} for length in lengths]
    return Case("encoder", model, {"batch": (1, 8), "length": (1, 512)}, sizes, inputs)


def images() -> Case:
    """ResNet-50 with random weights: any number of images."""
    generator = np.random.default_rng(0)
    model = onnx.ModelProto()
    model.CopyFrom(seeded_light_model("resnet50"))
    del model.graph.value_info[:]
    for value in (*model.graph.input, *model.graph.output):
        if value.name not in {weight.name for weight in model.graph.initializer}:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for weight in model.graph.initializer:
        if weight.name in shapes:
            shape = numpy_helper.to_array(weight)
            weight.CopyFrom(numpy_helper.from_array(np.array([0, *shape[1:]]), weight.name))
    (name,) = {value.name for value in model.graph.input} - {weight.name for weight in model.graph.initializer}

    def inputs(sizes: dict[str, int]) -> Arrays:
        return {name: generator.normal(size=(sizes["batch"], 3, 224, 224)).astype(np.float32)}

    return Case("resnet50", model, {"batch": (1, 16)}, [{"batch": batch} for batch in (1, 2, 5, 16)], inputs)


CASES = {"encoder": encoder, "resnet50": images}


Engine = Callable[[Arrays], Sequence[np.ndarray]]
"""Takes inputs, gives outputs."""


def session_engine(session: InferenceSession) -> Engine:
    """A session of ours."""
    return lambda inputs: session.run(None, inputs)


def onnxruntime_engine(content: bytes) -> Engine:
    """ONNX Runtime on one thread."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def openvino_engine(content: bytes, folder: Path) -> Engine:
    """OpenVINO on one thread, with the hint for latency, in 32-bit floats."""
    home = environment("openvino", ENGINES["openvino"].packages, folder).parent.parent
    sys.path.append(str(next(home.glob("lib/python*/site-packages"))))  # Behind our own packages, which are enough.
    engine: Any = import_module("openvino")
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    core = engine.Core()
    request = core.compile_model(core.read_model(content), "CPU", settings).create_infer_request()
    return lambda inputs: [*request.infer(inputs, share_inputs=True).values()]


def calls_of(case: Case, sizes: dict[str, int], engines: Sequence[Engine]) -> list[Callable[[], Any]]:
    """The calls by the one compilation, by one for these sizes, and by the others; all give the same."""
    inputs = case.inputs(sizes)
    special = InferenceSession(case.model.SerializeToString(), threads=1, dimensions=sizes)
    every = [engines[0], session_engine(special), *engines[1:]]
    first, *others = (engine(inputs) for engine in every)
    for other in others:
        for one, two in zip(first, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)
    return [lambda engine=engine: engine(inputs) for engine in every]


def measure(case: Case, rounds: int, folder: Path) -> None:
    """Print a line for each choice of sizes, and one for the mean."""
    content = case.model.SerializeToString()
    ours = InferenceSession(content, threads=1, dimensions=case.bounds)
    engines = [session_engine(ours), onnxruntime_engine(content), openvino_engine(content, folder)]
    totals: list[list[float]] = [[], [], [], []]
    for sizes in case.sizes:
        calls = calls_of(case, sizes, engines)
        seconds: list[list[float]] = [[] for _ in calls]
        for _ in range(rounds):
            for taken, call in zip(seconds, calls, strict=True):
                begin = time.perf_counter()
                call()
                taken.append(time.perf_counter() - begin)
        least = [min(taken) for taken in seconds]
        for total, value in zip(totals, least, strict=True):
            total.append(value)
        words = ", ".join(f"{name} {size}" for name, size in sizes.items())
        print(row(f"{case.name}, {words}", least, [median(taken) for taken in seconds]), flush=True)
    means = [mean(total) for total in totals]
    print(row(f"{case.name}, mean", means, means), flush=True)


def row(name: str, least: Sequence[float], middle: Sequence[float]) -> str:
    """A line of the table."""
    times = [f"{1e3 * a:.3f} ({1e3 * b:.3f})" for a, b in zip(least, middle, strict=True)]
    ratios = f"{least[0] / least[1]:.3f} | {least[2] / least[0]:.2f} | {least[3] / least[0]:.2f}"
    return f"| {name} | {' | '.join(times)} | {ratios} |"


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=count, default=15, help="calls of each (15)")
    add_core(parser)
    parser.add_argument("--only", default="", choices=["", *CASES], help="the model to measure")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where OpenVINO is installed ({FOLDER})")
    options = parser.parse_args()
    stay_on([options.core])
    print(f"{machine()}, {options.rounds} rounds, least (median) in ms\n")
    engines = "one compilation | one for the size | ONNX Runtime | OpenVINO"
    print(f"| model | {engines} | of the size's | ONNX Runtime / ours | OpenVINO / ours |")
    print("|---|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        if options.only in ("", name):
            measure(case(), options.rounds, options.folder)


if __name__ == "__main__":
    main()
