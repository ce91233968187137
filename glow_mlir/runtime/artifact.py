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
"""The status of an entry whose code is for another vector length than the processor's."""

CANCELLED = -2
"""The status of an entry that was cancelled."""


@dataclass(frozen=True)
class Binding:
    """
    One input, output or state of the entry, plain or packed: its name, role, element type and shape.

    If symbols determine the sizes, `sizes` has the sizes of all axes, and `shape` is the largest shape, or that of an
    output which extends this input. Memory is laid out for `shape`: the existing elements have the strides of an array
    of that shape.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    sizes: Sizes = ()
    extends: str = ""
    """The input that this output extends; both may share memory."""
    in_place_of: tuple[str, ...] = ()
    """The inputs that this output may replace in their memory: nothing is read of them behind its first write."""
    activations_offset: int = -1
    """The offset in the activations where the binding may reuse them; else -1."""

    @property
    def declared(self) -> Sizes:
        """The sizes of all axes."""
        return self.sizes or self.shape

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of its arrays."""
        return named_dtype(self.dtype)

    @property
    def nbytes(self) -> int:
        """The bytes of the tensor; the maximum, if symbols determine the size."""
        return int(np.prod(self.shape, dtype=np.int64)) * named_dtype(self.dtype).itemsize


@dataclass(frozen=True)
class ProfiledStep:
    """One instruction of the entry, for profiles: its kernel, its kind, and the ONNX nodes it comes from."""

    kernel: str
    kind: str
    location: str


@dataclass(frozen=True)
class Failure:
    """The meaning of a nonzero status: the reason, and the ONNX nodes whose data caused it."""

    reason: str
    location: str


@dataclass(frozen=True)
class Entry:
    """The signature and memory sizes (in bytes) of one function of the machine code."""

    name: str
    bindings: tuple[Binding, ...]
    activations: int
    activations_bound: int
    target: str
    """The target as text, as in the attribute of its function."""
    machine: str = ""
    """A short description of the processor; empty in older artifacts."""
    triple: str = ""
    features: tuple[str, ...] = ()
    """The requirements on the machine: architecture, system and features, by LLVM's names."""
    code: int = 0
    """The number of the object file that contains the function."""
    profile: bool = False
    observed: bool = False
    """Whether the last pointer argument holds callbacks, or is null (docs/bundles.md)."""
    cancellable: bool = False
    """
    Whether a pointer after those of bindings, sizes and times points to an int32 that is read by each loop iteration,
    and by each instruction whose time depends on values: if it is nonzero, the function returns `CANCELLED`.
    """
    threads: int = 1
    """The number of threads that instructions are partitioned for; 1 if none is partitioned."""
    steps: tuple[ProfiledStep, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    """
    The symbols in the sizes of bindings. A pointer after those of the bindings points to their values, an int64 each;
    the function stores the values of symbols that only outputs have.
    """
    failures: tuple[Failure, ...] = ()
    """The meanings of the statuses from 1 on."""
    writes: tuple[str, ...] = ()
    """Names of the states that it writes."""
    program: LaunchProgram | None = None
    """The launch program of a device, if the code has device functions."""

    @property
    def has_loops(self) -> bool:
        """
        Whether there are loops, possibly inside branches. Ctrl-C can end these as well, but its handler takes time to
        install.
        """
        return any(step.kind in ("loop", "if") for step in self.steps)

    @staticmethod
    def from_data(data: dict[str, Any]) -> Entry:
        """The entry from a JSON manifest; raises `KeyError` or `TypeError` for anything else."""
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
    A state shared by the entries: its name, element type and shape, and the offset of its initial value.

    The value is stored after the constants of the entries, in the same region; an offset of -1 means zeros.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = -1


@dataclass(frozen=True)
class Manifest:
    """The entries of an artifact, and their shared data. Sizes are in bytes."""

    entries: tuple[Entry, ...]
    constants: int
    state: tuple[StateValue, ...] = ()
    packing: tuple[Entry, ...] = ()
    """Internal entries: each computes a packed state from plain state."""
    large: tuple[tuple[int, int], ...] = ()
    """Offset and bytes of each constant that other artifacts may share, aligned to a page."""
    requirements: tuple[str, ...] = ()
    """Functions of a compiler's run-time library that the code calls; a linker has to provide them."""
    partitions: dict[str, Any] | None = None
    """For several devices: the parts of each, and the host programs, in the format of `runtime.bundled_partitions`."""
    values: dict[str, Any] | None = None
    """The inputs and outputs that are not tensors of numbers, in the format of `runtime.python_values`."""
    digests: dict[str, str] = field(default_factory=dict[str, str])
    """Part of a stored artifact → digest; empty for an artifact that was not stored."""

    def to_json(self) -> str:
        """The manifest as JSON text; `values` and the `in_place_of` of bindings are omitted if there are none."""
        data = asdict(self)
        if self.values is None:
            del data["values"]
        for entry in (*data["entries"], *data["packing"]):
            for binding in entry["bindings"]:
                if not binding["in_place_of"]:
                    del binding["in_place_of"]
        return json.dumps(data, indent=1)  # Digests of released bundles are those of this text.

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
    """An entry of a JSON manifest with its shape as a tuple."""
    return {**item, "shape": tuple(item["shape"])}


def binding_from_data(item: dict[str, Any]) -> Binding:
    """The binding from a JSON manifest; raises `KeyError` or `TypeError` for anything else."""
    return Binding(**_with_sizes(item))


def _with_sizes(item: dict[str, Any]) -> dict[str, Any]:
    """A binding of a JSON manifest with its shape and sizes as tuples."""
    sizes = tuple(_size(size) for size in item["sizes"])
    return {**_with_shape(item), "sizes": sizes, "in_place_of": tuple(item.get("in_place_of", ()))}


def _size(item: int | dict[str, Any]) -> Size:
    """The size from a JSON manifest."""
    if isinstance(item, int):
        return item
    terms = tuple((tuple(map(_factor, factors)), int(times)) for factors, times in item["terms"])
    return SymbolicSize(terms, int(item["offset"]))


def _factor(item: dict[str, Any]) -> Factor:
    """The symbol or quotient from a JSON manifest."""
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
    """Pages of the constants that other executables of the process may share."""

    def with_shared_constants(self, in_file: bool) -> Artifact:
        """
        The artifact, in whose constants large ones are shared with others in the process, see `share`; nothing may read
        the constants yet.
        """
        return replace(self, shared=tuple(share(self.constants, self.manifest.large, in_file)))
