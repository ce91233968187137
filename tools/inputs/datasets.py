"""Data sets: the inputs of many runs, from arrays and images in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass
from glow_mlir.tools.inputs.images import Image, Normalization
from glow_mlir.tools.inputs.run_inputs import read_npy, read_npz

Arrays = dict[str, np.ndarray]

_HINT = "a data set is a .npz file, or a folder of .npz files, .npy files or images"


class DatasetRun(NamedTuple):
    """The inputs of a run, and the share of the data set that it uses up."""

    inputs: Arrays
    share: float


@dataclass(frozen=True)
class Dataset:
    """
    The inputs of many runs, read from files of one kind, one after the other.

    A `.npz` file holds an array for each input, a `.npy` file the array of a single input. The first axis counts
    samples: whole runs if the other axes have the shape of the input, otherwise entries of the input's first axis.
    Images fill the first axis of the input. Samples that do not fill a last run are dropped, with a warning.
    """

    files: Sequence[Path]
    normalization: Normalization

    @property
    def suffix(self) -> str:
        """The kind of the files: `.npz`, `.npy`, or empty for images."""
        suffix = self.files[0].suffix.lower()
        return suffix if suffix in (".npz", ".npy") else ""

    def runs(self, arguments: Sequence[Argument]) -> Iterator[DatasetRun]:
        """
        Yield the runs for a session with these static `arguments`; raises `InputError` for files that do not fit them.
        """
        if not self.suffix:
            yield from self._of_images(arguments)
            return
        for number, file in enumerate(self.files):
            arrays = read_npz(file) if self.suffix == ".npz" else {_only(arguments, file).name: read_npy(file)}
            for inputs, share in _split(arrays, arguments, file):
                yield DatasetRun(inputs, (number + share) / len(self.files))

    def _of_images(self, arguments: Sequence[Argument]) -> Iterator[DatasetRun]:
        argument = _only(arguments, self.files[0])
        shape = argument.numbers
        size = shape[0] if shape else 1
        for begin in range(0, _whole(len(self.files), size, self.files[0].parent), size):
            images = [Image(file) for file in self.files[begin : begin + size]]
            batch = self.normalization.batch(images, shape, argument.numpy_dtype)
            yield DatasetRun({argument.name: batch}, (begin + size) / len(self.files))


def read_dataset(path: Path, normalization: Normalization) -> Dataset:
    """The data set in a file or folder; raises `InputError` where there is none."""
    try:
        is_folder = path.is_dir()
        files = (
            sorted(file for file in path.iterdir() if file.name[0] != "." and file.is_file()) if is_folder else [path]
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if not files:
        raise InputError("there is no file in it", file=str(path), hint=_HINT)
    found = Dataset(files, normalization)
    if not is_folder and found.suffix != ".npz":
        raise InputError("is no data set", file=str(path), hint=_HINT)
    if any(Dataset([file], normalization).suffix != found.suffix for file in files):
        raise InputError("has files of different kinds", file=str(path), hint=_HINT)
    return found


def _only(arguments: Sequence[Argument], file: Path) -> Argument:
    """The only input; raises `InputError` if there are several, so that the file has no clear input."""
    if len(arguments) != 1:
        listed = ", ".join(argument.name for argument in arguments) or "none"
        raise InputError(f"is for a model with one input, and this one has {listed}", file=str(file), hint=_HINT)
    return arguments[0]


def _split(arrays: Arrays, arguments: Sequence[Argument], file: Path) -> Iterator[tuple[Arrays, float]]:
    """Yield the inputs of each run in the arrays, and the share of the samples used up by it."""
    expected = {argument.name: argument for argument in arguments}
    if arrays.keys() != expected.keys():
        given, wanted = (", ".join(sorted(names)) or "none" for names in (arrays, expected))
        raise InputError(f"has arrays for {given}, and the inputs are {wanted}", file=str(file))
    parts = {name: _parts(array, expected[name], file) for name, array in arrays.items()}
    counts = {name: len(part) for name, part in parts.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} for {name}" for name, count in counts.items())
        raise InputError(f"has different numbers of runs: {listed}", file=str(file))
    total = max(counts.values(), default=0)
    for number in range(total):
        yield {name: part[number] for name, part in parts.items()}, (number + 1) / total


def _parts(array: np.ndarray, argument: Argument, file: Path) -> np.ndarray:
    """Reshape an array to have an axis of runs in front of the shape of the input."""
    shape = argument.numbers
    if array.shape[1:] == shape and array.ndim > len(shape):
        return array
    if array.ndim != len(shape) or not shape or array.shape[1:] != shape[1:] or shape[0] == 0:
        reason = f"samples of shape {list(array.shape)} do not fit the input '{argument.name}' of shape {list(shape)}"
        raise InputError(reason, file=str(file))
    whole = _whole(len(array), shape[0], file)
    return array[:whole].reshape(-1, *shape)


def _whole(samples: int, size: int, location: Path) -> int:
    """The number of samples that fill complete runs of `size`; raises `InputError` for less than one run."""
    if samples < size:
        raise InputError(
            f"has {samples} samples, and a run takes {size}", file=str(location), hint="--bind a smaller batch"
        )
    if left := samples % size:
        warn(InputError(f"the last {left} of {samples} samples do not fill a run of {size}", file=str(location)))
    return samples - left
