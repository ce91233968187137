"""Models that keep variables from call to call: all tensors are those of LiteRT's reference kernels, to the bit."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tflite_reference import AllTensors

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
    pytest.importorskip("pymicro_wakeword")
    model = AllTensors(Path(str(files("pymicro_wakeword") / "models" / f"{name}.tflite")).read_bytes())
    graph = model.file.subgraphs[0]
    for step in steps_of(graph.tensors[graph.inputs[0]].shape):
        model.compare([step])
    assert sum(len(values) >= MIN_DISTINCT for values in model.seen.values()) >= 0.9 * len(model.seen)
