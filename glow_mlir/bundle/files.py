"""A bundle as files in a folder, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from glow_mlir.bundle.archive import archive
from glow_mlir.bundle.compile import Bundle
from glow_mlir.bundle.debug_header import debug_header
from glow_mlir.bundle.header import header
from glow_mlir.bundle.layout import Place
from glow_mlir.bundle.linking import SUFFIXES, linked
from glow_mlir.codegen.llvm.symbols import linker_names
from glow_mlir.errors import OptionError
from glow_mlir.runtime.bundle import ABI, MANIFEST_SUFFIX, OBJECT_SUFFIX, WEIGHTS_SUFFIX
from glow_mlir.runtime.cache import artifact_digests
from glow_mlir.support.files import placed_files

ROW = 24
"""Bytes in a line of the weights as text."""


def weights_text(data: bytes) -> str:
    """Bytes between commas, for `#include` in the braces of a C array."""
    rows = (data[begin : begin + ROW] for begin in range(0, len(data), ROW))
    return ",\n".join(",".join(map(str, row)) for row in rows) + "\n"


def manifest_text(bundle: Bundle) -> str:
    """The manifest of the artifact, as the cache has it, and beside it what C calls what, and where it is."""
    layout, artifact = bundle.layout, bundle.artifact
    digests = artifact_digests(artifact.code, artifact.constants, artifact.manifest)
    manifest = replace(artifact.manifest, digests=digests)
    entries = [
        {
            "name": entry.name,
            "function": entry.symbol,
            "call": entry.entry.name,
            "first_status": entry.first_status,
            "mutables": entry.mutables,
            "places": [_place_data(place) for place in entry.places],
        }
        for entry in layout.entries
    ]
    data = {
        "abi": ABI,
        "name": bundle.name,
        "version": bundle.version,
        "constants": layout.constants,
        "mutables": layout.mutables,
        "activations": layout.activations,
        "entries": entries,
        "state": dict(layout.state),
        "artifact": json.loads(manifest.to_json()),
    }
    return json.dumps(data, indent=1) + "\n"


def _place_data(place: Place) -> dict[str, Any]:
    """What the manifest has of an input, output or state; scale and zero point of codes, where it has such."""
    codes = {} if place.codes is None else place.codes._asdict()
    return asdict(place.binding) | {"field": place.field, "offset": place.offset} | codes


def cmake_text(bundle: Bundle, library: str) -> str:
    """The package file of CMake: an imported target `NAME::NAME`, and `NAME_WEIGHTS`, the file of the constants."""
    name, kind = bundle.name, Path(library).suffix
    if kind == OBJECT_SUFFIX:
        form, place = "OBJECT", "IMPORTED_OBJECTS"
    else:
        form, place = ("STATIC" if kind == ".a" else "SHARED"), "IMPORTED_LOCATION"
    return f"""\
# find_package({name} REQUIRED PATHS …), then target_link_libraries(program PRIVATE {name}::{name}).
if(NOT TARGET {name}::{name})
  add_library({name}::{name} {form} IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    {place} "${{CMAKE_CURRENT_LIST_DIR}}/{library}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
set({name}_WEIGHTS "${{CMAKE_CURRENT_LIST_DIR}}/{name}{WEIGHTS_SUFFIX}")
"""


_ENDS = (
    OBJECT_SUFFIX,
    *SUFFIXES.values(),
    ".h",
    ".debug.h",
    MANIFEST_SUFFIX,
    ".mlir",
    WEIGHTS_SUFFIX,
    ".weights.txt",
    "-config.cmake",
)
"""What is behind its name in the names of the files of a bundle, whichever of them it has."""


def write_bundle(
    bundle: Bundle,
    folder: Path,
    emit: str = "object",
    read: Iterable[Path] = (),
    others: Mapping[str, str] | None = None,
) -> None:
    """
    Write the files of a bundle into a folder, which is made, and take away those of an earlier one of that name.

    `emit` is `object`, or what to make of it as well; `others` has the texts of more files by name. Raises
    `OptionError` where that is impossible, and where the bundle would replace a file that was `read` for it; then
    nothing has changed.
    """
    name, artifact = bundle.name, bundle.artifact
    files = {f"{name}{end}" for end in _ENDS}
    if taken := files & (others or {}).keys():
        raise OptionError("is a file of the bundle itself", file=str(folder / taken.pop()), hint="another name")
    has_earlier = (folder / f"{name}{MANIFEST_SUFFIX}").exists() and (folder / f"{name}.h").exists()
    with placed_files(folder, read, files if has_earlier else ()) as place:
        _write_library(bundle, place, emit)
        library = f"{name}{SUFFIXES.get(emit, OBJECT_SUFFIX)}"
        (place / f"{name}.h").write_text(header(bundle))
        if bundle.form.instrumented:
            (place / f"{name}.debug.h").write_text(debug_header(name))
        (place / f"{name}{MANIFEST_SUFFIX}").write_text(manifest_text(bundle))
        (place / f"{name}.mlir").write_text(bundle.text, encoding="utf-8")
        if emit != "wasm":
            (place / f"{name}-config.cmake").write_text(cmake_text(bundle, library))
        # With the constants in the object, only a program that runs bundles from files reads these.
        data = artifact.constants.tobytes()
        (place / f"{name}{WEIGHTS_SUFFIX}").write_bytes(data)
        if not bundle.form.constants:
            (place / f"{name}.weights.txt").write_text(weights_text(data))
        for other, text in (others or {}).items():
            (place / other).write_text(text, encoding="utf-8")


def _write_library(bundle: Bundle, place: Path, emit: str) -> None:
    """Write the object, and what else is made of it."""
    name, (code,) = bundle.name, bundle.artifact.code
    path = place / f"{name}{OBJECT_SUFFIX}"
    path.write_bytes(code)
    if emit == "archive":
        (place / f"{name}{SUFFIXES[emit]}").write_bytes(archive(path.name, code))
    elif emit != "object":
        linked([path], place / f"{name}{SUFFIXES[emit]}", emit, bundle.layout.target, linker_names(code))
