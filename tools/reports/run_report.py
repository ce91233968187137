"""The results of a run: compile time, a summary of its outputs, and the outputs in a file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from glow_mlir.driver.compile_times import CompileTimes
from glow_mlir.errors import printable
from glow_mlir.ir.text import write_text
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import replaced
from glow_mlir.tools.reports.tables import Alignment, print_table

TOP = 5
MAX_ROWS = 8
"""Vectors of a batch whose largest elements are listed."""

SHORTEST = 0.01
"""Compilation parts below this number of seconds are merged."""

STDOUT = "-"

COLUMNS: dict[str, Alignment] = {
    "output": "left",
    "type": "left",
    "min": "right",
    "max": "right",
    "mean": "right",
    "not finite": "right",
}


@dataclass(frozen=True)
class CompileSummary:
    """The time until the model was ready to run, by parts that sum to the total."""

    times: CompileTimes
    key: str = "compilation"

    def show(self) -> None:
        """Print the total, and the parts that are long enough, the longest first."""
        parts = sorted(self.times.parts.items(), key=lambda part: -part[1])
        shown = [f"{name} {seconds:.2f}" for name, seconds in parts if seconds >= SHORTEST]
        rest = sum(seconds for _, seconds in parts if seconds < SHORTEST)
        print(f"Compile time: {self.times.total:.2f} s = {' + '.join([*shown, f'others {rest:.2f}'])}")

    def data(self) -> dict[str, object]:
        """The seconds as JSON data."""
        return {"seconds": self.times.total, "parts": dict(self.times.parts)}


@dataclass(frozen=True)
class OutputSummary:
    """The outputs of a run by name; `labels` are the names of the elements of vectors that are as long."""

    outputs: Mapping[str, np.ndarray]
    labels: Sequence[str] = ()
    key: str = "outputs"

    def show(self) -> None:
        """Print statistics of each output, and the largest elements of vectors; print non-tensors as they are."""
        numbers = {name: array for name, array in self.outputs.items() if is_numbers(array)}
        if numbers or not self.outputs:
            print_table("outputs", COLUMNS, [_row(name, array) for name, array in numbers.items()])
        for name, value in self.outputs.items():
            if name not in numbers:
                print(f"{name}: {value_text(value)}")
        for name, array in numbers.items():
            for number, vector in enumerate(vectors(array)):
                label = name if vector.size == array.size else f"{name}[{number}]"
                best = ", ".join(f"{self._named(index, vector)}: {number_text(vector[index])}" for index in top(vector))
                print(f"top {min(TOP, vector.size)} of {label}: {best}")

    def _named(self, index: int, vector: np.ndarray) -> str:
        """The number of an element, with its label."""
        has_labels = len(self.labels) == vector.size
        return f"{index} {printable(self.labels[index])}" if has_labels else str(index)

    def data(self) -> list[dict[str, object]]:
        """The summary as JSON data."""
        return [_data(name, value) for name, value in self.outputs.items()]


def _data(name: str, value: Any) -> dict[str, object]:
    """An output as JSON data: statistics of a tensor, or any other value as it is."""
    if not is_numbers(value):
        return {"name": name, "value": plain(value)}
    return {
        "name": name,
        "type": value.dtype.name,
        "shape": list(value.shape),
        **{key: number if np.isfinite(number) else None for key, number in statistics(value).items()},
        "top": [[[int(index), float(row[index])] for index in top(row)] for row in vectors(value)],
    }


def is_numbers(value: object) -> bool:
    """Whether an output is a tensor of numbers, not of strings, and not a sequence, map or optional."""
    return isinstance(value, np.ndarray) and cast("np.ndarray", value).dtype.kind != "O"


def plain(value: Any) -> Any:
    """An output as lists, dictionaries, strings and numbers."""
    if isinstance(value, np.ndarray):
        return cast("np.ndarray", value).tolist()
    if isinstance(value, list):
        return list(map(plain, cast("list[Any]", value)))
    return value


def value_text(value: Any) -> str:
    """A readable text of an output that is not a tensor of numbers: its first elements."""
    if isinstance(value, np.ndarray):
        value = cast("np.ndarray", value).ravel().tolist()
    if not isinstance(value, list):
        return repr(value)
    items = cast("list[Any]", value)
    listed = ", ".join(_item_text(item) for item in items[:MAX_ROWS])
    return f"[{listed}{', …' if len(items) > MAX_ROWS else ''}]"


def _item_text(item: Any) -> str:
    """A readable text of an element of a sequence."""
    if isinstance(item, dict):
        pairs = cast("dict[Any, float]", item).items()
        return "{" + ", ".join(f"{key!r}: {number_text(number)}" for key, number in pairs) + "}"
    if isinstance(item, np.ndarray):
        array = cast("np.ndarray", item)
        return f"{array.dtype.name}{list(array.shape)}"
    return repr(item)


def statistics(array: np.ndarray) -> dict[str, float]:
    """Smallest, largest and mean element among the finite ones, and how many are not finite."""
    values = array.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    found = (finite.min(), finite.max(), finite.mean()) if finite.size else (np.nan,) * 3
    named = dict(zip(("min", "max", "mean"), map(float, found), strict=True))
    return {**named, "not_finite": values.size - finite.size}


def vectors(array: np.ndarray) -> list[np.ndarray]:
    """The array as a batch of vectors, such as a classifier's outputs; empty for other shapes."""
    wide = [size for size in array.shape[1:] if size != 1]
    if array.ndim == 1 and array.size > 1:
        return [array]
    if len(wide) != 1 or not 0 < array.shape[0] <= MAX_ROWS:
        return []
    return list(array.reshape(array.shape[0], -1))


def top(vector: np.ndarray) -> list[int]:
    """Positions of the largest elements of a vector, largest first; ties keep their order."""
    return [int(index) for index in np.argsort(-vector.astype(np.float64), kind="stable")[:TOP]]


def number_text(value: float | np.generic) -> str:
    """A number with at most six digits."""
    return f"{float(value):.6g}"


def _row(name: str, array: np.ndarray) -> list[str]:
    found = statistics(array)
    numbers = [number_text(found[key]) if not np.isnan(found[key]) else "-" for key in ("min", "max", "mean")]
    return [name, f"{array.dtype.name}{list(array.shape)}", *numbers, str(found["not_finite"])]


def write_arrays(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """
    Write a `.npz` file atomically; unlike `numpy.savez`, any names are allowed.

    Strings have numpy's fixed width, elements of sequences are named by position, and values of maps by key.
    """
    with replaced(path) as whole, zipfile.ZipFile(whole, "w") as archive:
        for name, array in dict(_flat(arrays.items())).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _flat(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested values, by name."""
    for name, value in values:
        if isinstance(value, np.ndarray):
            array = cast("np.ndarray", value)
            yield name, array.astype(str) if array.dtype.kind == "O" else array
        elif isinstance(value, dict):
            yield from _flat((f"{name}.{key}", number) for key, number in cast("dict[Any, Any]", value).items())
        elif isinstance(value, list):
            yield from _flat((f"{name}.{position}", item) for position, item in enumerate(cast("list[Any]", value)))
        elif value is not None:
            yield name, np.asarray(value)


def write_json(data: Mapping[str, object] | Sequence[object], target: str) -> None:
    """Write JSON to a file, or to stdout if `target` is `-`."""
    text = json.dumps(data, indent=1) + "\n"
    if target == STDOUT:
        print(text, end="")
    else:
        write_text(text, Path(target))
