"""The layout and C names of a bundle: entries, regions, and the offsets of inputs, outputs and state."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from glow_mlir.bundle.debug_header import debug_header
from glow_mlir.bundle.exchanged_quantized_values import QuantizationParameters
from glow_mlir.bundle.names import distinct, identifier, identifiers
from glow_mlir.bundle.shared_types import TYPES
from glow_mlir.dialects.glow_low.memory import aligned_size
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.artifact import Binding, Entry, Manifest
from glow_mlir.runtime.bundle import ABI, ENTRY_SUFFIX, SEAL_BYTES
from glow_mlir.support.dataclass import dataclass

BindingKey = tuple[str, str, str]
"""A binding: the symbol of its entry, its role and its name."""

KEPT = ("state", "packed")
"""The roles of data that persists between calls."""

_RESERVED = ("error", "error_text", "initialize", "constants", "config")
"""Suffixes of a bundle's own names."""

SHARED_NAMES = frozenset(re.findall(r"\bglow_\w+", TYPES + debug_header("")))
"""Names defined by the headers of all bundles."""

OWN_FIELDS = ("sizes", "observer", "nothing")
"""Fields of an entry's buffers other than inputs, outputs and state."""

_FORMS = ("", ENTRY_SUFFIX, "_direct", "_buffers")
"""Suffixes of an entry's functions and types."""


@dataclass(frozen=True)
class BindingSlot:
    """
    An input, output or state of an entry: its C name, the prefix of its macros, its type as text, and its offset in the
    mutables, or in the activations if it `is_reused`.
    """

    binding: Binding
    field: str
    macro: str
    type: str
    offset: int
    quantization: QuantizationParameters | None = None
    """The quantization parameters of its integers, if the model specifies them."""

    @property
    def is_reused(self) -> bool:
        """Whether activations reuse its memory while it is not needed."""
        return self.binding.activations_offset >= 0

    @property
    def region(self) -> str:
        """The region that contains it."""
        return "activations" if self.is_reused else "mutables"


@dataclass(frozen=True)
class EntryLayout:
    """The C interface of an entry; `symbol` is its checked function, `macro` the prefix of its macros."""

    name: str
    symbol: str
    macro: str
    entry: Entry
    slots: tuple[BindingSlot, ...]
    mutables: int
    first_status: int
    """The offset of its statuses, which distinguishes the statuses of all entries."""


@dataclass(frozen=True)
class BundleLayout:
    """The layout of a bundle. Sizes are in bytes."""

    name: str
    target: Target
    entries: tuple[EntryLayout, ...]
    manifest: Manifest
    state: Mapping[str, int]
    """Public name of plain or packed state → its offset in the mutables, the same for all entries."""

    @property
    def macro(self) -> str:
        """The prefix of its macros."""
        return self.name.upper()

    @property
    def alignment(self) -> int:
        """The alignment of all regions in bytes."""
        return self.target.alignment

    @property
    def constants(self) -> int:
        """The size of the constants, including the seal at the end."""
        return self.manifest.constants

    @property
    def mutables(self) -> int:
        """The size of the mutables, sufficient for each entry."""
        return max((entry.mutables for entry in self.entries), default=0)

    @property
    def activations(self) -> int:
        """The size of the activations, sufficient for each entry."""
        return max((entry.activations for entry in (*self.manifest.entries, *self.manifest.packing)), default=0)

    @property
    def failures(self) -> list[str]:
        """The meanings of statuses from 1 on, for all entries in order."""
        return [
            f"{failure.location}: {failure.reason}" if failure.location else failure.reason
            for layout in self.entries
            for failure in layout.entry.failures
        ]

    @property
    def has_threads(self) -> bool:
        """Whether an entry uses a parallel-for."""
        return any(layout.entry.threads > 1 for layout in self.entries)


def entry_names(bundle: str, wanted: Sequence[str]) -> list[str]:
    """The C names of entries after the bundle's name; neither the names nor names derived from them clash."""
    taken = {*_RESERVED, *(name.removeprefix(f"{bundle}_") for name in SHARED_NAMES)}
    found: list[str] = []
    for text in wanted:
        name = distinct(identifier(text), lambda name: any((name + form).lower() in taken for form in _FORMS))
        taken.update((name + form).lower() for form in _FORMS)
        found.append(name)
    return found


def lay_out(
    name: str,
    target: Target,
    manifest: Manifest,
    types: Mapping[BindingKey, str],
    quantization: Mapping[BindingKey, QuantizationParameters],
) -> BundleLayout:
    """
    The layout of a bundle with these entries.

    `types` has the type of each binding as text, `quantization` the parameters of some integers.
    """
    entries = manifest.entries
    state: dict[str, int] = {}
    begin = 0
    for entry in (*entries, *manifest.packing):
        for binding in entry.bindings:
            if binding.role in KEPT and binding.name not in state:
                state[binding.name] = begin
                begin += aligned_size(binding.nbytes, target.alignment)
    found: list[EntryLayout] = []
    macros: set[str] = set()
    first_status = 0
    for entry in entries:
        short = entry.name.removeprefix(f"{name}_").removesuffix(ENTRY_SUFFIX)
        symbol = f"{name}_{short}"
        macro = (name if len(entries) == 1 else symbol).upper()
        slots: list[BindingSlot] = []
        end = begin
        for binding, field in zip(entry.bindings, _fields(entry), strict=True):
            offset = binding.activations_offset
            if binding.role in KEPT:
                offset = state[binding.name]
            elif offset < 0:
                offset, end = end, end + aligned_size(binding.nbytes, target.alignment)
            own = distinct(f"{macro}_{binding.role}_{field}".upper(), macros.__contains__)
            macros.add(own)
            key = entry.name, binding.role, binding.name
            slots.append(BindingSlot(binding, field, own, types[key], offset, quantization.get(key)))
        found.append(EntryLayout(short, symbol, macro, entry, tuple(slots), end, first_status))
        first_status += len(entry.failures)
    return BundleLayout(name, target, tuple(found), manifest, state)


def _fields(entry: Entry) -> list[str]:
    """The C fields of an entry's bindings; macros distinguish an input and an output of the same name by role."""
    return identifiers((binding.name for binding in entry.bindings), OWN_FIELDS)


def version_of(manifest: Manifest, contents: np.ndarray) -> int:
    """
    The number that ties header, object and weights together: a digest of the entries' interface and of the constants.

    It has 32 bits, and is never 0, the value of callers that set none.
    """
    text = json.dumps([ABI, manifest.to_json()])
    return zlib.crc32(contents.data, zlib.crc32(text.encode())) or 1


def seal(region: np.ndarray, version: int) -> None:
    """Write the version, and the ABI version, to the end of a constants region."""
    words = np.array([int.from_bytes(b"glow", "little"), ABI, version, region.size], np.uint32)
    region[-SEAL_BYTES:] = words.view(np.uint8)
