"""The inputs of a run: arrays and images from files, random numbers for the rest."""

from __future__ import annotations

import string
import zipfile
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, OptionError
from glow_mlir.runtime.assumptions import following
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import BFLOAT16, NARROW_INTEGERS, POWERS_OF_TWO, is_float_dtype, named_dtype
from glow_mlir.support.symbols import Dimension, size_from_label
from glow_mlir.tools.inputs.images import Image, Normalization

_NAMELESS_BYTES = np.dtype("V1")
"""The dtype that numpy writes for elements of one byte that it does not know, such as 8-bit floats."""

DEFAULT_SEED = 0


SMALL, LARGE = 119, 136
"""Encodings of the smallest power of two drawn, 1/256, and of the one after the largest, 256."""


def random_array(shape: Sequence[int], dtype: np.dtype, generator: np.random.Generator) -> np.ndarray:
    """
    Draw random numbers that most models accept: floats from a normal distribution, powers of two around 1, and bytes
    over their whole range.

    Wider integers are 0 or 1, because they are usually indices, and every table has two entries. Strings are letters.
    """
    if dtype.kind == "O":
        return np.array(list(string.ascii_lowercase), object)[np.asarray(generator.integers(0, 26, shape))]
    draw: dict[str, Callable[[], np.ndarray]] = {
        "f": lambda: generator.standard_normal(shape),
        "b": lambda: generator.integers(0, 2, shape),
    }
    whole = np.iinfo(dtype) if dtype.kind in "iu" else None
    if whole is not None and dtype.itemsize == 1:
        draw[dtype.kind] = lambda: generator.integers(whole.min, whole.max + 1, shape)
    if dtype.name == POWERS_OF_TWO:
        return generator.integers(SMALL, LARGE, shape, np.uint8).view(dtype)
    if (bits := NARROW_INTEGERS.get(dtype.name)) is not None:
        return generator.integers(0, 1 << bits, shape, np.uint8).view(dtype)
    kind = "f" if is_float_dtype(dtype) else dtype.kind
    return np.asarray(draw.get(kind, draw["b"])()).astype(dtype)


@dataclass
class Inputs:
    """The inputs on the command line, before the model is known. The name `""` means the only input."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    images: dict[str, list[Image]] = field(default_factory=dict[str, list[Image]])
    normalization: Normalization = field(default_factory=Normalization)
    seed: int | None = None
    """The seed of inputs that no file gives; `None` allows random inputs only if no file gives any input."""
    values: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    """Inputs given as numbers; they are converted to the types and shapes of the inputs."""

    def complete(self, arguments: Sequence[Argument], fixed: Collection[str] = ()) -> dict[str, np.ndarray]:
        """
        The inputs for a session with these `arguments`; the session itself checks shapes and types.

        Free dimensions of drawn inputs take their sizes from the given inputs; otherwise they are 1, with a warning.
        Raises `InputError` for a missing input that is in `fixed`.
        """
        known = {argument.name: argument for argument in arguments}
        given: dict[str, np.ndarray] = {}
        for label, array in self.arrays.items():
            given[_new(label, known, given)] = array
        for name, array in given.items():
            if array.dtype == _NAMELESS_BYTES and name in known:
                dtype = known[name].numpy_dtype
                given[name] = array.view(dtype) if dtype.itemsize == 1 else array
        for label, images in self.images.items():
            name = _new(label, known, given)
            argument = _argument(name, known)
            given[name] = self.normalization.batch(images, argument.shape or (), argument.numpy_dtype)
        for label, numbers in self.values.items():
            name = _new(label, known, given)
            given[name] = _argument(name, known).converted(numbers)
        if (self.arrays or self.images) and self.seed is None:
            return given
        generator = np.random.default_rng(DEFAULT_SEED if self.seed is None else self.seed)
        missing = [argument for argument in arguments if argument.name not in given]
        for argument in missing:
            _check_drawable(argument, fixed)
        sizes = free_sizes(arguments, given)
        for item in missing:
            shape = [size if isinstance(size, int) else sizes[size] for size in item.shape or ()]
            given[item.name] = random_array(shape, item.numpy_dtype, generator)
        return given


def _check_drawable(argument: Argument, fixed: Collection[str]) -> None:
    """Raise `InputError` for an input that cannot be random: not a tensor, of unknown rank, or determining shapes."""
    if argument.type:
        reason = f"input '{argument.name}' is {argument.type}, which no file of arrays has"
        raise InputError(reason, hint="run the model in Python, with InferenceSession")
    if argument.shape is None:
        hint = f"--bind {argument.name}.0=SIZE for each axis, or an input in a file"
        raise InputError(f"input '{argument.name}' has unknown rank", hint=hint)
    if argument.name in fixed:
        reason = f"input '{argument.name}' fixes shapes, and no random numbers do"
        raise InputError(reason, hint=f"--value {argument.name}=NUMBERS, or give it in a file")


def largest(arguments: Sequence[Argument], bound: Mapping[str, Dimension]) -> list[Argument]:
    """Replace bounded dimensions by their largest sizes, for inputs that are drawn."""
    most = {label: bounds[1] or bounds[0] for label, bounds in bound.items() if isinstance(bounds, tuple)}
    return [item if item.shape is None else replace(item, shape=_at(item.shape, most)) for item in arguments]


def _at(shape: Sequence[int | str], sizes: Mapping[str, int]) -> tuple[int | str, ...]:
    """A shape with `sizes` in place of free dimensions."""
    found: list[int | str] = []
    for size in shape:
        known = size_from_label(size, sizes) if isinstance(size, str) else size
        found.append(known if isinstance(known, int) else sizes.get(str(size), size))
    return tuple(found)


def free_sizes(arguments: Sequence[Argument], given: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes of free dimensions: taken from the given arrays, or expressions of others; else 1, with a warning."""
    found: dict[str, int] = {}
    for argument in arguments:
        if argument.name in given and argument.shape is not None:
            pairs = zip(argument.shape, given[argument.name].shape, strict=False)
            found.update((label, size) for label, size in pairs if isinstance(label, str))
    free = {label: item.name for item in arguments for label in item.shape or () if isinstance(label, str)}
    derived = following(free.keys() - found.keys(), found)
    if unknown := {label: name for label, name in free.items() if label not in found and label not in derived}:
        listed = ", ".join(f"'{label}' of input '{name}'" for label, name in unknown.items())
        hint = f"--bind {quote(next(iter(unknown)))}=1, or an input in a file"
        warn(InputError(f"unknown size: {listed} is taken to be 1", hint=hint))
    sizes = found | dict.fromkeys(unknown, 1)
    for label, size in [(label, size_from_label(label, sizes)) for label in derived]:
        sizes[label] = max(size, 0) if isinstance(size, int) else 1
    return sizes


def read_inputs(args: Namespace) -> Inputs:
    """The inputs in the options; raises `InputError` for a file that cannot be read."""
    arrays: dict[str, np.ndarray] = {}
    values: dict[str, np.ndarray] = {}
    if args.inputs is not None:
        arrays |= read_npz(Path(args.inputs))
    for name, path in _named(args.input):
        if name in arrays:
            raise OptionError(f"input '{name}' is given twice")
        arrays[name] = read_npy(path)
    for name, numbers in args.value:
        if name in arrays:
            raise OptionError(f"input '{name}' is given twice")
        values[name] = np.array(numbers)
    images: dict[str, list[Image]] = {}
    for name, path in _named(args.image):
        images.setdefault(name, []).append(Image(path))
    return Inputs(arrays, images, normalization_of(args), args.seed, values)


def normalization_of(args: Namespace) -> Normalization:
    """The normalization of pixels in the options."""
    return Normalization(
        args.layout or "NCHW", args.image_mode, args.mean or (0.0,), args.stddev or (1.0,), args.image_size
    )


def _named(texts: Iterable[str]) -> list[tuple[str, Path]]:
    """Split `NAME=FILE` or `FILE` into name and path."""
    pairs: list[tuple[str, Path]] = []
    for text in texts:
        name, sign, path = text.partition("=")
        if sign and not path:
            raise OptionError(f"'{text}' names no file", hint="write NAME=FILE, or FILE where there is one input")
        pairs.append((name, Path(path)) if sign else ("", Path(text)))
    return pairs


def _resolved(name: str, known: dict[str, Argument]) -> str:
    if name:
        return name
    if len(known) != 1:
        listed = ", ".join(known) or "none"
        raise InputError(f"a file without a name needs a model with one input, and this one has {len(known)}: {listed}")
    return next(iter(known))


def _new(label: str, known: dict[str, Argument], given: Collection[str]) -> str:
    """The name of a given input; raises `OptionError` if it was given before."""
    if (name := _resolved(label, known)) in given:
        raise OptionError(f"input '{name}' is given twice")
    return name


def _argument(name: str, known: dict[str, Argument]) -> Argument:
    if name not in known:
        raise InputError(f"there is no input '{name}'", hint=f"inputs are {', '.join(known)}")
    return known[name]


def read_npy(path: Path) -> np.ndarray:
    """The array in a `.npy` file; raises `InputError` where there is none."""
    found = _loaded(path)
    if not isinstance(found, np.ndarray):
        raise InputError("has several arrays", file=str(path), hint="give a .npz file with --inputs")
    return found


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays in a `.npz` file by name; raises `InputError` where it is none."""
    found = _loaded(path)
    if isinstance(found, np.ndarray):
        raise InputError("has one array without a name", file=str(path), hint="give a .npy file with --input NAME=FILE")
    return found


def _named_floats(array: np.ndarray) -> np.ndarray:
    """The array, reinterpreted as bfloat16 if its elements are two untyped bytes, as numpy writes bfloat16."""
    return array.view(named_dtype(BFLOAT16)) if array.dtype == np.dtype("V2") else array


def _loaded(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """Load a file with `numpy.load`, archives completely; never a pickle, which could run code."""
    try:
        found: Any = np.load(path, allow_pickle=False)
        if not hasattr(found, "files"):
            return _named_floats(found)
        with found:
            return {name: _named_floats(found[name]) for name in found.files}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    except MemoryError as error:
        raise InputError("declares an array that does not fit into memory", file=str(path)) from error
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        # For a damaged file, numpy would suggest that it is a pickle, and how to load one.
        raise InputError("is no .npy or .npz file of numbers, or is cut off", file=str(path)) from error
