"""What a TensorFlow Lite file says of itself: its metadata, and the files in the archive behind it, such as labels."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glow_mlir.errors import ModelError
from glow_mlir.frontends.tflite.file import TfliteFile
from glow_mlir.support.flatbuffer import Flatbuffer, Table

DESCRIBED = "TFLITE_METADATA"
"""The name of the metadata that are a flatbuffer: TensorFlow Lite's schema of metadata, version 1."""

IDENTIFIER = b"M001"
"""The identifier of that flatbuffer."""

FIELDS = {"version": 2, "author": 4, "license": 5}
"""What that flatbuffer says in text → its field; 0 is the name, 1 the description."""

MAX_FILE_BYTES = 1 << 22
"""The maximum size of a file of an archive that is read."""


def metadata_of(model: TfliteFile, source: Path | bytes) -> dict[str, Any]:
    """
    Name, description and properties, named as in `ModelMetadata`; texts of the archive are properties by their names.

    Raises `ModelError` for a damaged archive, or damaged metadata.
    """
    properties: dict[str, str] = {}
    name, description = model.subgraphs[0].name, model.description
    for key, content in model.metadata.items():
        described = _described(content.tobytes(), model.file) if key == DESCRIBED else None
        if described is not None:
            name, description = described.text(0) or name, described.text(1) or description
            properties |= {word: text for word, number in FIELDS.items() if (text := described.text(number))}
        elif (text := _text(content.tobytes().rstrip(b"\0"))) is not None:
            properties[key] = text
    properties |= dict(_archived(model, source))
    return {"graph_name": name, "description": description, "custom_metadata_map": properties}


def _described(content: bytes, file: str) -> Table | None:
    """The first table of metadata; `None` if they are of another kind."""
    return Flatbuffer(memoryview(content), file).root() if content[4:8] == IDENTIFIER else None


def _archived(model: TfliteFile, source: Path | bytes) -> Iterator[tuple[str, str]]:
    """Name and text of each file in the archive behind the model."""
    stream = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    with stream:
        if not zipfile.is_zipfile(stream):
            return
        try:
            with zipfile.ZipFile(stream) as archive:
                for name in archive.namelist():
                    with archive.open(name) as file:
                        content = file.read(MAX_FILE_BYTES + 1)
                    if len(content) <= MAX_FILE_BYTES and (text := _text(content)) is not None:
                        yield name, text
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            reason = f"the archive behind the model is damaged: {' '.join(str(error).split())}"
            raise ModelError(reason, file=model.file, hint="check that the download is complete") from error


def _text(content: bytes) -> str | None:
    """Bytes as text; `None` if they are none."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else None
