"""Precision of the nodes of a model in a file: written by `glow-tune`, loaded by sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast

from glow_mlir.errors import InputError, OptionError
from glow_mlir.options.quantization import Quantization
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.files import replaced
from glow_mlir.support.json_text import parsed_json

FORMAT = "glow-precision"
VERSION = 1

_HINT = "glow-tune writes configurations"


@dataclass(frozen=True)
class Configuration:
    """
    The quantization of a model, if any, the precision of its float operators, and patterns (`*`, `?`) of nodes or
    operator kinds that stay in f32.
    """

    quantize: Quantization | None = None
    precision: str = "f32"
    keep_precision: Sequence[str] = ()

    def session_options(self) -> dict[str, Any]:
        """Convert to options of an `InferenceSession`."""
        return {"quantize": self.quantize, "precision": self.precision, "keep_precision": tuple(self.keep_precision)}

    def write(self, path: Path) -> None:
        """Write the configuration atomically; its profile is named relative to the folder of the file."""
        quantize = None
        if self.quantize is not None:
            profile = os.path.relpath(self.quantize.profile, path.parent)
            quantize = asdict(self.quantize) | {"profile": profile, "keep": list(self.quantize.keep)}
        floats = {"precision": self.precision, "keep_precision": list(self.keep_precision)}
        data = {"format": FORMAT, "version": VERSION, **floats, "quantize": quantize}
        with replaced(path) as file:
            file.write(f"{json.dumps(data, indent=1)}\n".encode())


def read_configuration(path: Path) -> Configuration:
    """Read the configuration in a file; raises `InputError` if there is none."""
    try:
        data: Any = parsed_json(path.read_bytes())
        if data["format"] != FORMAT:
            raise ValueError("another format")
        if data["version"] != VERSION:
            reason = f"is a configuration of version {data['version']}, not {VERSION}"
            raise InputError(reason, file=str(path), hint=_HINT)
        quantize = None if data["quantize"] is None else _quantization(dict(data["quantize"]), path.parent)
        return Configuration(quantize, _text(data["precision"]), _texts(data["keep_precision"]))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    except (ValueError, KeyError, TypeError, OptionError) as error:
        raise InputError("is no configuration, or is damaged", file=str(path), hint=_HINT) from error


def _quantization(data: dict[str, Any], folder: Path) -> Quantization:
    """
    The quantization options of a file in a folder, some of which may be absent; raises `ValueError` or `TypeError` for
    invalid ones.
    """
    if not {"profile", "keep"} <= data.keys() <= {field.name for field in fields(Quantization)}:
        raise ValueError("other options")
    own: dict[str, Any] = {"profile": folder / _text(data["profile"]), "keep": _texts(data["keep"])}
    return Quantization(**{**data, **own})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return tuple(_text(entry) for entry in cast("list[object]", value))
