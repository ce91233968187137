"""
Ensembles of decision trees: microseconds a row beside ONNX Runtime and the libraries that trained them, on one thread.

    python benchmarks/trees.py
    python benchmarks/trees.py --shapes 100x6 forest --rows 1 4096

A shape is so many trees of LightGBM's of a depth, `100x6`; with XGBoost, as many of its own take turns with them.
`default` are 100 trees of LightGBM's of 31 leaves, and `forest` is scikit-learn's, without a limit of depth. Peers are
those of lightgbm and xgboost that are installed; a shape whose trainer or converter is missing is left out.

Inputs rotate, so that no processor learns the way through the trees: 128 blocks of 32 rows, 2,048 single rows. All take
turns, in one process and on one core. Times are of the process, the least of all rounds, each the mean over the inputs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.machine import add_core, machine, stay_on
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.tools.arguments.bounded_numbers import count

FEATURES = 30

SAMPLES = 20_000
"""Rows that trees are trained with."""

INPUTS: Mapping[int, int] = {1: 2048, 32: 128}
"""Rows → how many inputs take turns; of others two."""

Call = Callable[[np.ndarray], Any]


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Features, and a target that depends on a few of them."""
    random = np.random.default_rng(0)
    x = random.standard_normal((SAMPLES, FEATURES), np.float32)
    noise = 0.3 * random.standard_normal(SAMPLES, np.float32)
    return x, x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + x[:, 3] ** 2 + noise


def optional(name: str) -> Any:
    """A module, or `None` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def boosted(shape: str) -> tuple[onnx.ModelProto, dict[str, Call]] | None:
    """Trees of LightGBM's of a shape, and what its library and XGBoost's make of as many."""
    lightgbm, converters, xgboost = (optional(name) for name in ("lightgbm", "onnxmltools", "xgboost"))
    if lightgbm is None or converters is None:
        return None
    (x, y), trees, depth = samples(), 100, 0
    options: dict[str, Any] = {"objective": "regression", "num_threads": 1, "verbose": -1}
    if shape != "default":
        trees, depth = map(int, shape.split("x"))
        options |= {"num_leaves": 2**depth, "max_depth": depth, "learning_rate": 0.05}
        options |= {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0}
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), trees)
    tensor = importlib.import_module("onnxmltools.convert.common.data_types").FloatTensorType
    model = converters.convert_lightgbm(booster, initial_types=[("x", tensor([None, FEATURES]))], target_opset=15)
    peers: dict[str, Call] = {"LightGBM": lambda rows: booster.predict(rows, num_threads=1)}
    if xgboost is not None and depth:
        settings = {"max_depth": depth, "tree_method": "hist", "min_child_weight": 0, "eta": 0.05, "nthread": 1}
        other = xgboost.train(settings, xgboost.DMatrix(x, y), trees)
        peers["XGBoost"] = other.inplace_predict
    return model, peers


def forest() -> tuple[onnx.ModelProto, dict[str, Call]] | None:
    """A random forest of scikit-learn's with about 1.5 million nodes."""
    ensemble, converter = optional("sklearn.ensemble"), optional("skl2onnx")
    if ensemble is None or converter is None:
        return None
    x, y = samples()
    found = ensemble.RandomForestRegressor(60, random_state=0, n_jobs=1, max_features=10).fit(x, y)
    return converter.to_onnx(found, x[:1], target_opset={"": 15, "ai.onnx.ml": 3}), {}


def timed(call: Call, inputs: Sequence[np.ndarray]) -> float:
    """Seconds of a call, the mean over inputs."""
    begin = time.process_time()
    for rows in inputs:
        call(rows)
    return (time.process_time() - begin) / len(inputs)


def measure(model: onnx.ModelProto, peers: Mapping[str, Call], rows: int, rounds: int) -> dict[str, float]:
    """Seconds of a call of each, the least of all rounds; checks that both sessions compute the same."""
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = model.SerializeToString()
    theirs = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    ours = InferenceSession(model, threads=1, cache=False)
    name = theirs.get_inputs()[0].name
    random = np.random.default_rng(1)
    inputs = [random.standard_normal((rows, FEATURES), np.float32) for _ in range(INPUTS.get(rows, 2))]
    calls: dict[str, Call] = {
        "ours": lambda x: ours.run(None, {name: x}),
        "ONNX Runtime": lambda x: theirs.run(None, {name: x}),
        **peers,
    }
    first, second = (np.reshape(calls[kind](inputs[0])[0], -1) for kind in ("ours", "ONNX Runtime"))
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-5)
    found = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for kind, call in calls.items():
            some = inputs if kind in ("ours", "ONNX Runtime") else inputs[: len(inputs) // 8 + 1]
            found[kind] = min(found[kind], timed(call, some))
    return found


def compile_seconds(model: onnx.ModelProto, rows: int) -> float:
    """What the process takes from the model to the first answer."""
    begin = time.process_time()
    session = InferenceSession(model, threads=1, cache=False)
    session.run(None, {session.get_inputs()[0].name: np.zeros((rows, FEATURES), np.float32)})
    return time.process_time() - begin


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shapes = ["100x6", "500x8", "1000x3", "default", "forest"]
    parser.add_argument("--shapes", nargs="+", default=shapes, help=f"{' '.join(shapes)}, or any NxD")
    parser.add_argument("--rows", nargs="+", type=count, default=[1, 32, 4096], help="rows of an inference")
    parser.add_argument("--rounds", type=count, default=5, help="rounds of timing (5)")
    add_core(parser)
    options = parser.parse_args()
    stay_on([options.core])
    print(f"{machine()}, one thread, {options.rounds} rounds, µs a row; ratios are of their time and ours\n")
    print("| trees | rows | ours | ONNX Runtime | ratio | best library | ratio | to the first answer, s |")
    print("|" + "---|" * 8)
    for shape in options.shapes:
        made = forest() if shape == "forest" else boosted(shape)
        if made is None:
            print(f"| {shape} | not measured: what trains or converts it is not installed |")
            continue
        model, peers = made
        for rows in options.rows:
            seconds = compile_seconds(model, rows)
            found = measure(model, peers, rows, options.rounds)
            ours, theirs = found.pop("ours"), found.pop("ONNX Runtime")
            library = min(found, key=lambda kind: found[kind], default=None)
            best = ("-", "-") if library is None else (_micro(found[library], rows), f"{found[library] / ours:.2f}")
            named = best[0] if library is None else f"{best[0]} ({library})"
            cells = [shape, rows, _micro(ours, rows), _micro(theirs, rows), f"{theirs / ours:.2f}", named, best[1]]
            print("| " + " | ".join(map(str, [*cells, f"{seconds:.2f}"])) + " |", flush=True)


def _micro(seconds: float, rows: int) -> str:
    """Microseconds a row."""
    return f"{seconds / rows * 1e6:.3g}"


if __name__ == "__main__":
    main()
