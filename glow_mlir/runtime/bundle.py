"""File names of a bundle, and a bundle as a session, without the compiler."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from glow_mlir.errors import GlowError, InputError
from glow_mlir.runtime.artifact import Artifact, Manifest
from glow_mlir.runtime.cache import artifact_digests
from glow_mlir.runtime.identity import checksum_of
from glow_mlir.support.json_text import parsed_json

ABI = 2
"""The version of the calling convention and of the files of bundles."""

SEAL_BYTES = 16
"""The trailer of the constants of a bundle: four words; the third is the version of the bundle."""

SEAL_VERSION = 8
"""The index of the version in the trailer."""

ENTRY_SUFFIX = "_call"
"""The suffix of the name of an entry with the calling convention of sessions."""

MANIFEST_SUFFIX = ".json"
OBJECT_SUFFIX = ".o"
WEIGHTS_SUFFIX = ".weights.bin"


def read_bundle(folder: Path, name: str | None = None) -> tuple[str, dict[str, str], Artifact]:
    """
    The name of a bundle, the symbol of each entry, and its artifact with mapped constants.

    Raises `InputError` if the folder has no bundle, or several, or a damaged one.
    """
    path = _manifest_path(folder, name)
    try:
        data = parsed_json(path.read_text(encoding="utf-8"))
        if data["abi"] != ABI:
            hint = "compile the model again"
            raise InputError(f"the bundle has version {data['abi']}, expected {ABI}", file=str(path), hint=hint)
        name = str(data["name"])
        functions = {str(entry["name"]): str(entry["call"]) for entry in data["entries"]}
        manifest = Manifest.from_json(json.dumps(data["artifact"]))
        code = ((folder / f"{name}{OBJECT_SUFFIX}").read_bytes(),)
        weights = folder / f"{name}{WEIGHTS_SUFFIX}"
        # An empty file cannot be mapped, and no bundle has one.
        constants = np.memmap(weights, np.uint8, "r") if weights.stat().st_size else np.zeros(0, np.uint8)
    except GlowError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(error.filename or path)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("is not the manifest of a bundle", file=str(path), hint="glow-compile writes them") from error
    if not functions or artifact_digests(code, checksum_of(constants.data), manifest) != manifest.digests:
        hint = "compile the model again"
        raise InputError("object, weights and manifest do not belong together", file=str(path), hint=hint)
    return name, functions, Artifact(code, constants, manifest)


def _manifest_path(folder: Path, name: str | None) -> Path:
    """The manifest of the bundle in a folder, which is next to a header."""
    found = sorted(path for path in folder.glob(f"*{MANIFEST_SUFFIX}") if path.with_suffix(".h").exists())
    names = [path.stem for path in found]
    if name is not None and name in names:
        return found[names.index(name)]
    if not found:
        raise InputError("there is no bundle here", file=str(folder), hint="glow-compile model.onnx -o DIR")
    if name is not None or len(found) > 1:
        reason = f"there is no bundle '{name}' here" if name is not None else "there are several bundles here"
        raise InputError(reason, file=str(folder), hint=f"there are {', '.join(names)}")
    return found[0]
