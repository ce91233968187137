"""Files of `torch.export.save` (`.pt2`), read without unpickling anything."""

from __future__ import annotations

import json
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import torch
from torch._export.serde import schema, serialize
from torch.export import ExportedProgram

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.torch.model import TracedModel
from glow_mlir.torch.exported_model import model_of
from glow_mlir.torch.program_checks import check_program
from glow_mlir.torch.safety_net import reason_of

package: Any = import_module("torch.export.pt2_archive._package")
"""The parts of `torch.export.load`, which would unpickle the sample inputs."""

PICKLES = ("data/weights/{}.pt", "data/constants/{}.pt")
"""Where older versions of PyTorch put pickles of weights and constants; `{}` is the name of the program."""

OBJECTS = ("custom_obj", "opaque_obj")
"""The beginnings of the names of constants that are pickles."""


def model_of_file(path: Path) -> TracedModel:
    """
    The model of a file that `torch.export.save` wrote, with the names and free dimensions of the program.

    Raises `ModelError` for a damaged file, and `UnsupportedError` for one that holds pickles, which may run code.
    """
    try:
        program = _program(path)
    except (ModelError, UnsupportedError) as error:
        error.file = error.file or str(path)
        raise
    except MemoryError:
        raise
    except Exception as error:
        raise ModelError(f"PyTorch cannot read the program: {reason_of(error)}", file=str(path)) from error
    return model_of(program)


def _program(path: Path) -> ExportedProgram:
    """The program of a file; its sample inputs, a pickle, are not read."""
    name = _checked_name(path)
    reader: Any = package.PT2ArchiveReader(str(path))
    read = cast("Any", serialize)._bytes_to_dataclass
    serialized = read(schema.ExportedProgram, reader.read_bytes(f"models/{name}.json"))
    state, constants = (getattr(package, part)(reader, name) for part in ("_load_state_dict", "_load_constants"))
    with torch.no_grad():
        return serialize.ExportedProgramDeserializer(None).deserialize(serialized, state, constants, None)


def _checked_name(path: Path) -> str:
    """The name of the only program of an archive, after a check that nothing in it has to be unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            root = names[0].split("/")[0] if names else ""
            programs = [_stem(name) for name in names if name.startswith(f"{root}/models/") and name.endswith(".json")]
            if len(programs) != 1:
                raise ModelError(f"is not a program of torch.export: it has {len(programs)} graphs", file=str(path))
            (program,) = programs
            check_program(json.loads(archive.read(f"{root}/models/{program}.json")))
            pickles = [name for name in names if name in [f"{root}/{item.format(program)}" for item in PICKLES]]
            for kind in ("weights", "constants"):
                config = f"{root}/data/{kind}/{program}_{kind}_config.json"
                if config in names:
                    pickles += _pickles_in(json.loads(archive.read(config)))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ModelError(f"is not a program of torch.export: {reason_of(error)}", file=str(path)) from error
    if pickles:
        reason = f"it holds a pickle, which may run any code: {pickles[0]}"
        hint = "torch.export.load(FILE) reads a file that you trust; glow_mlir.from_torch takes what it gives"
        raise UnsupportedError(reason, file=str(path), hint=hint)
    return program


def _pickles_in(config: Any) -> list[str]:
    """The payloads of a configuration that are pickles."""
    payloads = cast("dict[str, dict[str, Any]]", config["config"])
    return [
        name
        for name, item in payloads.items()
        if item.get("use_pickle") is not False or str(item.get("path_name", "")).startswith(OBJECTS)
    ]


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(".json")
