"""`--dump-values`: the results of every instruction of a run, as `.npy` files with an index."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.driver.pipelines import SELECT, STACKED, Pipeline, Stage, configured
from glow_mlir.errors import OptionError
from glow_mlir.ir.text import make_folder, write_text
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import replaced
from glow_mlir.tools.reports.run_report import statistics
from glow_mlir.transforms.instructions.instrument_debug import PREFIX

INDEX = "index.json"
LONGEST = 100
"""The maximum length of node names in a file name."""


def value_pipeline(args: Namespace) -> Pipeline:
    """
    The pipeline of a backend with `instrument-debug` inserted.

    A backend that selects no kernels runs the instructions of the default backend, so that values can be compared.
    """
    keep = configured("instrument-debug", only=args.values_of or "*")
    whole = get_backend(args.backend).pipeline(args.target)
    if any(spec.name == SELECT for spec in whole.specs):
        return whole.without(*args.disable).before(SELECT, keep)
    shared = get_backend(DEFAULT_BACKEND).pipeline(args.target).without(*args.disable)
    return shared.until(STACKED.name).then(Stage.of("instrumented", keep))


@dataclass(frozen=True)
class Value:
    """One array of the dump: its number in the program, the kind of its instruction, and the nodes it comes from."""

    number: int
    kind: str
    nodes: str
    array: np.ndarray

    @classmethod
    def of(cls, name: str, array: np.ndarray) -> Value:
        """The value of an output that `instrument-debug` added."""
        number, kind, nodes = name.removeprefix(PREFIX).split(".", 2)
        return cls(int(number), kind, nodes, array)

    @property
    def file(self) -> str:
        """The name of its file."""
        nodes = re.sub(r"[^\w.+-]+", "_", self.nodes)[:LONGEST]
        return f"{self.number:04}-{self.kind}-{nodes}.npy"

    def entry(self) -> dict[str, object]:
        """Its entry in the index."""
        summary = {name: value if np.isfinite(value) else None for name, value in statistics(self.array).items()}
        type_, shape = self.array.dtype.name, list(self.array.shape)
        head = {"number": self.number, "kind": self.kind, "nodes": self.nodes, "file": self.file}
        return {**head, "type": type_, "shape": shape, **summary}


def split_values(outputs: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[Value]]:
    """The outputs of the model, and the values that `instrument-debug` kept, in program order."""
    own = {name: array for name, array in outputs.items() if not name.startswith(PREFIX)}
    values = [Value.of(name, array) for name, array in outputs.items() if name.startswith(PREFIX)]
    return own, sorted(values, key=lambda value: value.number)


def write_values(values: list[Value], folder: Path, pattern: str) -> None:
    """
    Write the files of all values and then the index; raises `OptionError` if there are no values, or writing fails.
    """
    if not values:
        raise OptionError(
            f"no instruction has a node or kind that matches '{pattern}'",
            hint="a module after the stage 'stacked' keeps no values",
        )
    make_folder(folder)
    for value in values:
        with replaced(folder / value.file) as file:
            np.save(file, value.array, allow_pickle=False)
    write_text(json.dumps([value.entry() for value in values], indent=1) + "\n", folder / INDEX)
