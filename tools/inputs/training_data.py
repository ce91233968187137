"""Samples to train and to evaluate on, from files: arrays with targets, or folders of images by class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.tools.inputs.images import Image, Normalization
from glow_mlir.tools.inputs.run_inputs import read_npy, read_npz
from glow_mlir.training.batches import TARGETS, Arrays, ArraySamples

_HINT = "samples are a .npz file, or a folder with a folder of images for each class"


@dataclass(frozen=True)
class ImageSamples:
    """Images and their classes; images are read when a batch needs them."""

    images: Sequence[Path]
    classes: np.ndarray
    normalization: Normalization
    argument: Argument

    def __len__(self) -> int:
        return len(self.images)

    def take(self, positions: np.ndarray) -> Arrays:
        """The images and classes at the given positions."""
        numbers: list[int] = positions.tolist()
        images = [Image(self.images[number]) for number in numbers]
        shape, dtype = (len(images), *self.argument.numbers[1:]), self.argument.numpy_dtype
        return {self.argument.name: self.normalization.batch(images, shape, dtype), TARGETS: self.classes[positions]}


@dataclass(frozen=True)
class ArrayFiles:
    """A `.npz` file of samples; the targets may be in a separate `.npy` file."""

    path: Path
    labels: Path | None
    arrays: Arrays

    @staticmethod
    def read(path: Path, labels: Path | None) -> ArrayFiles:
        """Read the files; raises `InputError` for files without numbers, and for two arrays of targets."""
        arrays = read_npz(path)
        if labels is not None:
            if TARGETS in arrays:
                raise InputError(f"has {TARGETS}, and so has {labels}", file=str(path), hint="give one of them")
            arrays[TARGETS] = read_npy(labels)
        return ArrayFiles(path, labels, arrays)

    def __len__(self) -> int:
        return max((len(array) for array in self.arrays.values() if array.ndim), default=0)

    def samples(self, arguments: Sequence[Argument]) -> ArraySamples:
        """The samples for a step with these inputs; raises `InputError` if they do not fit."""
        self._check_names(self.arrays, [argument.name for argument in arguments])
        found = {item.name: self._fitting(self.arrays[item.name], item) for item in arguments}
        counts = {name: len(array) for name, array in found.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count} for {name}" for name, count in counts.items())
            raise InputError(f"there are different numbers of samples: {listed}", file=self.file_of(TARGETS))
        return ArraySamples(found)

    def file_of(self, name: str) -> str:
        """The file of an array."""
        return str(self.labels if name == TARGETS and self.labels else self.path)

    def _check_names(self, arrays: Mapping[str, np.ndarray], wanted: Sequence[str]) -> None:
        """Raise `InputError` for a missing or an unknown array."""
        for name in wanted:
            if name not in arrays:
                hint = (
                    "a .npy file may have them: --labels, --evaluation-labels"
                    if name == TARGETS
                    else f"it has {', '.join(arrays)}"
                )
                raise InputError(f"there is no array '{name}'", file=str(self.path), hint=hint)
        if unknown := [name for name in arrays if name not in wanted]:
            reason = f"the array '{unknown[0]}' is for no input"
            raise InputError(reason, file=self.file_of(unknown[0]), hint=f"inputs of a step are {', '.join(wanted)}")

    def _fitting(self, array: np.ndarray, argument: Argument) -> np.ndarray:
        """
        Convert an array to the type of an input, with a leading axis of samples; raises `InputError` if it does not
        fit.
        """
        file_of, shape = self.file_of(argument.name), argument.numbers[1:]
        if array.ndim == 1 and math.prod(shape) == 1:
            array = array.reshape(-1, *shape)
        if not array.ndim or array.shape[1:] != shape:
            reason = f"samples of shape {list(array.shape[1:])} are not for '{argument.name}' of shape {list(shape)}"
            raise InputError(reason, file=file_of, hint="the first axis is that of samples")
        dtype = argument.numpy_dtype
        is_float = is_float_dtype(dtype)
        fits = is_float_dtype(array.dtype) if is_float else array.dtype.kind in "iu" and dtype.kind in "iu"
        if not (fits or array.dtype == dtype):
            reason = f"'{argument.name}' is of {dtype.name}, not of {array.dtype.name}"
            raise InputError(reason, file=file_of, hint="convert the array")
        found = np.ascontiguousarray(array, dtype)
        if not is_float and not np.array_equal(found, array):
            raise InputError(f"'{argument.name}' has numbers that {dtype.name} cannot represent", file=file_of)
        return found


@dataclass(frozen=True)
class ImageFolder:
    """A folder with a folder of images for each class."""

    path: Path
    images: Sequence[Path]
    classes: Sequence[int]
    names: Sequence[str]
    normalization: Normalization

    @staticmethod
    def read(path: Path, normalization: Normalization, names: Sequence[str] | None = None) -> ImageFolder:
        """
        Read a folder; `names` are the known classes, by default the names of its subfolders.

        Raises `InputError` for a subfolder that is not a known class, and if there are no subfolders.
        """
        folders = sorted(folder for folder in _listed(path) if folder.is_dir())
        if not folders:
            raise InputError("there is no folder in it", file=str(path), hint=_HINT)
        known = list(names or (folder.name for folder in folders))
        found: list[tuple[Path, int]] = []
        for folder in folders:
            if folder.name not in known:
                hint = f"there are {', '.join(known[:10])}"
                raise InputError("the data set has no class of that name", file=str(folder), hint=hint)
            files = sorted(file for file in _listed(folder) if file.is_file())
            found += [(file, known.index(folder.name)) for file in files]
        return ImageFolder(path, [file for file, _ in found], [number for _, number in found], known, normalization)

    def __len__(self) -> int:
        return len(self.images)

    def samples(self, arguments: Sequence[Argument]) -> ImageSamples:
        """The samples for a step with these inputs; raises `InputError` if the step takes other inputs."""
        inputs = [argument for argument in arguments if argument.name != TARGETS]
        classes = next((item for item in arguments if item.name == TARGETS and len(item.numbers) == 1), None)
        if len(inputs) != 1 or classes is None or classes.numpy_dtype.kind not in "iu":
            listed = ", ".join(f"{item.name}: {item}" for item in arguments)
            reason = f"images by class are for a step with one input and a class for each sample, not ({listed})"
            raise InputError(reason, file=str(self.path))
        numbers = np.array(self.classes, classes.numpy_dtype)
        return ImageSamples(self.images, numbers, self.normalization, inputs[0])

    def file_of(self, name: str) -> str:
        """The source of the targets."""
        return str(self.path)


def read_samples(
    path: Path, labels: Path | None, normalization: Normalization, names: Sequence[str] | None = None
) -> ArrayFiles | ImageFolder:
    """Read a file or a folder; raises `InputError` if there are no samples, or for labels of an image folder."""
    if path.is_dir():
        if labels is not None:
            raise InputError("is for arrays: folders tell the classes of images", file=str(labels))
        found = ImageFolder.read(path, normalization, names)
    else:
        found = ArrayFiles.read(path, labels)
    if not len(found):
        raise InputError("there are no samples", file=str(path), hint=_HINT)
    return found


def _listed(folder: Path) -> list[Path]:
    """The entries of a folder except hidden files."""
    try:
        return [path for path in folder.iterdir() if path.name[0] != "."]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(folder)) from error
