"""Write a bundle as files in a folder, all or nothing."""

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
from glow_mlir.bundle.layout import BindingSlot
from glow_mlir.bundle.linking import SUFFIXES, linked
from glow_mlir.bundle.packages import DEFAULT, PACKAGES
from glow_mlir.codegen.llvm.symbols import linker_names
from glow_mlir.errors import OptionError
from glow_mlir.runtime.bundle import ABI, MANIFEST_SUFFIX, OBJECT_SUFFIX, WEIGHTS_SUFFIX
from glow_mlir.runtime.cache import artifact_digests
from glow_mlir.runtime.identity import checksum_of
from glow_mlir.support.files import placed_files
from glow_mlir.support.json_text import parsed_json

ROW = 24
"""The number of bytes per line of the weights as text."""


def weights_text(data: bytes) -> str:
    """Comma-separated bytes, to be included in the braces of a C array."""
    rows = (data[begin : begin + ROW] for begin in range(0, len(data), ROW))
    return ",\n".join(",".join(map(str, row)) for row in rows) + "\n"


def manifest_text(bundle: Bundle, package: str) -> str:
    """The manifest of the artifact as in the cache, plus C names and offsets."""
    layout, artifact = bundle.layout, bundle.artifact
    digests = artifact_digests(artifact.code, checksum_of(artifact.constants.data), artifact.manifest)
    manifest = replace(artifact.manifest, digests=digests)
    entries = [
        {
            "name": entry.name,
            "function": entry.symbol,
            "call": entry.entry.name,
            "first_status": entry.first_status,
            "mutables": entry.mutables,
            "places": [_binding_data(slot) for slot in entry.slots],
        }
        for entry in layout.entries
    ]
    data = {
        "abi": ABI,
        "name": bundle.name,
        "version": bundle.version,
        "package": package,
        "constants": layout.constants,
        "mutables": layout.mutables,
        "activations": layout.activations,
        "entries": entries,
        "state": dict(layout.state),
        "artifact": json.loads(manifest.to_json()),
    }
    return json.dumps(data, indent=1) + "\n"


def _binding_data(slot: BindingSlot) -> dict[str, Any]:
    """The manifest entry of an input, output or state, including scale and zero point of quantized values."""
    quantization = {} if slot.quantization is None else slot.quantization._asdict()
    return asdict(slot.binding) | {"field": slot.field, "region": slot.region, "offset": slot.offset} | quantization


_ENDS = (
    OBJECT_SUFFIX,
    *SUFFIXES.values(),
    ".h",
    ".debug.h",
    MANIFEST_SUFFIX,
    ".mlir",
    WEIGHTS_SUFFIX,
    ".weights.txt",
)
"""The possible suffixes of a bundle's files after its name."""


def write_bundle(
    bundle: Bundle,
    folder: Path,
    emit: str = "object",
    read: Iterable[Path] = (),
    others: Mapping[str, str] | None = None,
    package: str = DEFAULT,
) -> None:
    """
    Write the files of a bundle into a folder, which is created, and remove those of an earlier bundle of that name.

    `emit` is `object`, or an additional form of it; `others` has the texts of further files by name; `package` is one
    of `PACKAGES`. Raises `OptionError` if that fails, or if the bundle would replace an input file (`read`), or a file
    that does not belong to an earlier bundle; then nothing has changed.
    """
    name, artifact = bundle.name, bundle.artifact
    library = f"{name}{SUFFIXES.get(emit, OBJECT_SUFFIX)}"
    form, earlier = PACKAGES[package], _earlier(folder, name)
    packaged = form.contents(bundle, library)
    if taken := {*_own(name), *packaged} & (others or {}).keys():
        raise OptionError("is a file of the bundle itself", file=str(folder / taken.pop()), hint="another name")
    if taken := {path for path in form.shared - earlier if (folder / path).exists()}:
        reason = f"would be replaced, and is of no bundle '{name}'"
        raise OptionError(reason, file=str(folder / min(taken)), hint="a folder for each package")
    with placed_files(folder, read, earlier) as slot:
        _write_library(bundle, slot, emit)
        (slot / f"{name}.h").write_text(header(bundle))
        if bundle.form.instrumented:
            (slot / f"{name}.debug.h").write_text(debug_header(name))
        (slot / f"{name}{MANIFEST_SUFFIX}").write_text(manifest_text(bundle, package))
        (slot / f"{name}.mlir").write_text(bundle.text, encoding="utf-8")
        # If the object contains the constants, only programs that run bundles from files read these.
        data = artifact.constants.tobytes()
        (slot / f"{name}{WEIGHTS_SUFFIX}").write_bytes(data)
        if not bundle.form.constants:
            (slot / f"{name}.weights.txt").write_text(weights_text(data))
        for path, content in packaged.items():
            (slot / path).parent.mkdir(parents=True, exist_ok=True)
            (slot / path).write_bytes(content)
        for other, text in (others or {}).items():
            (slot / other).write_text(text, encoding="utf-8")


def _own(name: str) -> set[str]:
    """The possible file names of a bundle."""
    return {f"{name}{end}" for end in _ENDS}


def _earlier(folder: Path, name: str) -> set[str]:
    """The paths of the files of an existing bundle of that name in a folder, if there is one."""
    if not (folder / f"{name}.h").exists():
        return set()
    try:
        data = parsed_json((folder / f"{name}{MANIFEST_SUFFIX}").read_text(encoding="utf-8"))
        form = PACKAGES[data.get("package", DEFAULT)]
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return _own(name)
    found = {str(path.relative_to(folder)) for pattern in form.patterns(name) for path in folder.glob(pattern)}
    return _own(name) | found


def _write_library(bundle: Bundle, slot: Path, emit: str) -> None:
    """Write the object, and the library made from it."""
    name, (code,) = bundle.name, bundle.artifact.code
    path = slot / f"{name}{OBJECT_SUFFIX}"
    path.write_bytes(code)
    if emit == "archive":
        (slot / f"{name}{SUFFIXES[emit]}").write_bytes(archive(path.name, code))
    elif emit != "object":
        linked([path], slot / f"{name}{SUFFIXES[emit]}", emit, bundle.layout.target, linker_names(code))
