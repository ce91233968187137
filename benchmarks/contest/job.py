"""
What a worker is asked to do, and what a runner is. Nothing here needs more than the standard library and numpy.

`runners/` has a module for each engine, run by the engine's own Python. Each has `load(job, inputs)`, which returns a
`Runner`, and may have `prepare(job)`, which converts the model to a file of the engine's own, once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

Arrays = dict[str, np.ndarray]
"""Tensors by name, in the order of the model."""


@dataclass(frozen=True)
class Job:
    """
    One model on one engine.

    `model` is the ONNX file, `inputs` an `.npz` file with its inputs, `outputs` the names of its outputs, `folder` a
    place for files that the engine converts the model to. `cores` are the cores to stay on.
    """

    engine: str
    model: str
    inputs: str
    outputs: list[str]
    folder: str
    threads: int
    cores: list[int]

    def to_json(self) -> str:
        """The job as one line of text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """The job that `to_json` wrote."""
        return Job(**json.loads(text))

    def converted(self, name: str) -> Path:
        """A file below `folder`, which is created."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        return Path(self.folder) / name


class Runner(Protocol):
    """A loaded model with its inputs in place."""

    def call(self) -> None:
        """Run once; this is what is timed. The results are complete when it returns."""
        ...

    def outputs(self) -> list[np.ndarray]:
        """The outputs of the last call, in the order of the model."""
        ...
