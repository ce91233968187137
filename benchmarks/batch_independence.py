"""
Whether samples of a batch see each other: each model of the benchmark, with one of three samples replaced.

    python benchmarks/batch_independence.py                   # all models, and the zoo
    python benchmarks/batch_independence.py resnet50 minilm

Prints a line for each model, and ends with 1 where a bit of another sample changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from influences import Arrays, influences
from models import random_inputs

from contest.workloads import BUILT, in_batches
from glow_mlir import InferenceSession

SAMPLES = 3

AXES = {"lstm": 1, "gru": 1}
"""Models whose samples do not lie along the first axis → along which one."""


def influences_in(name: str) -> list[str]:
    """How samples of a model see each other."""
    axis = AXES.get(name, 0)
    model = in_batches(BUILT[name], SAMPLES, axis)
    session = InferenceSession(model, cache=False)
    outputs = [output.name for output in session.get_outputs()]

    def run(inputs: Arrays) -> Arrays:
        return dict(zip(outputs, session.run(None, inputs), strict=True))

    return influences(run, random_inputs(model, np.random.default_rng(0)), axis)


def main() -> int:
    """Check the models that the command line names; the exit code."""
    parser = argparse.ArgumentParser(description="Check that samples of a batch do not see each other.")
    parser.add_argument("models", nargs="*", help="names of models of the benchmark; default all")
    asked = parser.parse_args().models or list(BUILT)
    if unknown := [name for name in asked if name not in BUILT]:
        parser.error(f"{unknown[0]} is none of {', '.join(BUILT)}")
    failed = 0
    for name in asked:
        found = influences_in(name)
        failed += bool(found)
        verdict = "; ".join(found) or "samples are apart"
        print(f"{name}: {verdict}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
