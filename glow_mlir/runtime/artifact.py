"""The result of a compilation: machine code, packed constants, and a manifest that describes its entries."""

from __future__ import annotations

import json
from dataclasses import asdict, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from glow_mlir.runtime.launches import LaunchProgram
from glow_mlir.runtime.shared_constants import SharedPages, share
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.json_text import parsed_json
from glow_mlir.support.symbols import Factor, Quotient, Size, Sizes, Symbol, SymbolicSize

WRONG_VECTORS = -1
"""The status of an entry whose code is for vectors of another length than the processor has."""

CANCELLED = -2
"""The status of an entry that was told to end before it was done."""


@dataclass(frozen=True)
class Binding:
    """
    One input, output or state of the entry, plain or packed: its name, role, element type and shape.

    Where symbols decide `sizes`, which has those of all axes then, `shape` is the largest, or that of an output which
    begins with this input. The tensor is laid out for that: the elements that there are have the strides of an array of
    that shape.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    sizes: Sizes = ()
    extends: str = ""
    """The input with which this output begins; both may be in the same memory."""
    activations_offset: int = -1
    """The offset in the activations where the binding may reuse them; else -1."""

    @property
    def declared(self) -> Sizes:
        """The sizes of all axes."""
        return self.sizes or self.shape

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of arrays for it."""
        return named_dtype(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, the most where symbols decide."""
        return int(np.prod(self.shape, dtype=np.int64)) * named_dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ProfiledStep:
    """One instruction of the entry, for profiles: its kernel, its kind, and the ONNX nodes it comes from."""

    kernel: str
    kind: str
    location: str


@dataclass(frozen=True)
class Failure:
    """The meaning of a status other than 0: the reason, and the ONNX nodes whose data is at fault."""

    reason: str
    location: str


@dataclass(frozen=True)
class Entry:
    """The signature of one function of the machine code and the memory that it needs. Sizes are in bytes."""

    name: str
    bindings: tuple[Binding, ...]
    activations: int
    activations_bound: int
    target: str
    """The target in words, as the attribute of its function has it."""
    machine: str = ""
    """A short description of the processor; empty in older artifacts."""
    triple: str = ""
    features: tuple[str, ...] = ()
    """The requirements on the machine: architecture, system and features, by LLVM's names."""
    code: int = 0
    """Number of the object file that has the function."""
    profile: bool = False
    observed: bool = False
    """Whether a pointer behind all others has callbacks, or is null (docs/bundles.md)."""
    cancellable: bool = False
    """
    Whether a pointer behind those of bindings, sizes and times has an int32 that each trip of a loop reads, and each
    instruction that takes as long as values say: where it is not 0, the function returns `CANCELLED`.
    """
    threads: int = 1
    """For how many threads instructions are cut into parts; 1 where none is."""
    steps: tuple[ProfiledStep, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    """
    The symbols in the sizes of bindings. A pointer behind those of the bindings has their values, an int64 each; the
    function stores there what those are that only outputs have.
    """
    failures: tuple[Failure, ...] = ()
    """The meanings of the statuses from 1 on."""
    writes: tuple[str, ...] = ()
    """Names of the state that it writes."""
    program: LaunchProgram | None = None
    """The launch program of a device, if the code has device functions."""

    @property
    def has_loops(self) -> bool:
        """
        Whether there are loops, possibly in branches. Ctrl-C ends these as well; the handler takes some time to
        install.
        """
        return any(step.kind in ("loop", "if") for step in self.steps)

    @staticmethod
    def from_data(data: dict[str, Any]) -> Entry:
        """The entry that a manifest in JSON has; raises `KeyError` or `TypeError` for anything else."""
        tuples: dict[str, Any] = {
            "bindings": tuple(map(binding_from_data, data["bindings"])),
            "symbols": tuple(Symbol(**item) for item in data["symbols"]),
            "steps": tuple(ProfiledStep(**item) for item in data["steps"]),
            "features": tuple(data["features"]),
            "failures": tuple(Failure(**item) for item in data["failures"]),
            "writes": tuple(data["writes"]),
        }
        if data.get("program") is not None:
            tuples["program"] = LaunchProgram.from_data(data["program"])
        return Entry(**{**data, **tuples})


@dataclass(frozen=True)
class StateValue:
    """
    State that the entries share: its name, element type and shape, and the offset of its initial value.

    The value is behind the constants of the entries, in their region; where the offset is -1, it is zeros.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = -1


@dataclass(frozen=True)
class Manifest:
    """The entries of an artifact, and the data that they share. Sizes are in bytes."""

    entries: tuple[Entry, ...]
    constants: int
    state: tuple[StateValue, ...] = ()
    packing: tuple[Entry, ...] = ()
    """
    The entries that no caller names: each makes the packed state that it is bound to, of the state that it is bound to.
    """
    large: tuple[tuple[int, int], ...] = ()
    """Offset and bytes of each constant that other artifacts may have as well, at a multiple of a page."""
    requirements: tuple[str, ...] = ()
    """Functions of a compiler's run-time library that the code calls; a linker has to find them."""
    partitions: dict[str, Any] | None = None
    """Of several devices, what each has, and the host programs, as `runtime.bundled_partitions` reads them."""
    values: dict[str, Any] | None = None
    """The inputs and outputs that are no tensors of numbers, as `runtime.python_values` reads them."""
    digests: dict[str, str] = field(default_factory=dict[str, str])
    """Part of a stored artifact → digest; empty for one that was never stored."""

    def to_json(self) -> str:
        """The manifest as JSON text, in which values for Python are where there are any."""
        data = asdict(self)
        if self.values is None:
            del data["values"]
        return json.dumps(data, indent=1)

    @staticmethod
    def from_json(text: str) -> Manifest:
        """The manifest that `to_json` wrote; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        data: dict[str, Any] = parsed_json(text)
        for group in ("entries", "packing"):
            data[group] = tuple(map(Entry.from_data, data[group]))
        data["large"] = tuple((int(offset), int(size)) for offset, size in data["large"])
        data["requirements"] = tuple(data["requirements"])
        data["state"] = tuple(StateValue(**_with_shape(item)) for item in data["state"])
        return Manifest(**data)


def _with_shape(item: dict[str, Any]) -> dict[str, Any]:
    """An entry of a manifest in JSON with its shape as a tuple."""
    return {**item, "shape": tuple(item["shape"])}


def binding_from_data(item: dict[str, Any]) -> Binding:
    """The binding that a manifest in JSON has; raises `KeyError` or `TypeError` for anything else."""
    return Binding(**_with_sizes(item))


def _with_sizes(item: dict[str, Any]) -> dict[str, Any]:
    """A binding of a manifest in JSON with its shape and sizes as tuples."""
    return {**_with_shape(item), "sizes": tuple(_size(size) for size in item["sizes"])}


def _size(item: int | dict[str, Any]) -> Size:
    """The size that a manifest in JSON has."""
    if isinstance(item, int):
        return item
    terms = tuple((tuple(map(_factor, factors)), int(times)) for factors, times in item["terms"])
    return SymbolicSize(terms, int(item["offset"]))


def _factor(item: dict[str, Any]) -> Factor:
    """The symbol or quotient that a manifest in JSON has."""
    if "divisor" not in item:
        return Symbol(**item)
    dividend = _size(item["dividend"])
    if not isinstance(dividend, SymbolicSize):
        raise ValueError("corrupt artifact: dividend of a size quotient must be symbolic")
    return Quotient(dividend, int(item["divisor"]))


@dataclass(frozen=True)
class Artifact:
    """The object files, the constants region and the manifest of compiled functions."""

    code: tuple[bytes, ...]
    constants: np.ndarray
    manifest: Manifest
    shared: tuple[SharedPages, ...] = ()
    """Pages of the constants that other executables of the process may have as well."""

    def with_shared_constants(self, in_file: bool) -> Artifact:
        """
        The artifact, with large constants that the process has already in its constants, see `share`; nobody may read
        these yet.
        """
        return replace(self, shared=tuple(share(self.constants, self.manifest.large, in_file)))
