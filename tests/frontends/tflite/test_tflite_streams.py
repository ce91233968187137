"""Models that keep variables from call to call: all tensors are those of LiteRT's reference kernels, to the bit."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.frontends.tflite.importer import import_tflite

pytestmark = pytest.mark.extra

MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")
STEPS = 50
MIN_DISTINCT = 20
"""The number of values that nearly all tensors take at least."""


def steps_of(shape: tuple[int, ...]) -> np.ndarray:
    """Slowly changing noise of int8."""
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(0, 14, (STEPS, *shape)), 0) * 0.3
    return (walk + random.normal(0, 40, walk.shape)).clip(-128, 127).astype(np.int8)


@pytest.mark.parametrize("name", MODELS)
def test_wake_words(name: str) -> None:
    litert: Any = pytest.importorskip("ai_edge_litert.interpreter")
    pytest.importorskip("pymicro_wakeword")
    path = Path(str(files("pymicro_wakeword") / "models" / f"{name}.tflite"))
    model = TfliteFile.open(path)
    graph = model.subgraphs[0]
    made = {number for operator in graph.operators for number in operator.outputs}
    numbers = sorted(number for number in made - {*graph.outputs} if graph.tensors[number].dtype != "resource")
    session = InferenceSession(import_tflite(model, tensors=numbers), threads=1)
    kernels = litert.OpResolverType.BUILTIN_REF
    theirs = litert.Interpreter(
        str(path), experimental_op_resolver_type=kernels, experimental_preserve_all_tensors=True
    )
    theirs.allocate_tensors()
    (detail,), (given,) = theirs.get_input_details(), session.get_inputs()
    seen: dict[int, set[int]] = {number: set() for number in numbers}
    for step in steps_of(graph.tensors[graph.inputs[0]].shape):
        theirs.set_tensor(detail["index"], step)
        theirs.invoke()
        results = dict(zip((item.name for item in session.get_outputs()), session.run(None, {given.name: step})))
        for number in numbers:
            found = results[f"tensor {number}"]
            np.testing.assert_array_equal(found, theirs.get_tensor(number), err_msg=graph.tensors[number].name)
            seen[number] |= {*found.reshape(-1).tolist()}
    assert sum(len(values) >= MIN_DISTINCT for values in seen.values()) >= 0.9 * len(seen)
