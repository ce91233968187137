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
    try:
        reader = _CheckedReader(path)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ModelError(f"is not a program of torch.export: {reason_of(error)}") from error
    read = cast("Any", serialize)._bytes_to_dataclass
    serialized = read(schema.ExportedProgram, reader.read_bytes(f"models/{reader.program}.json"))
    state, constants = (
        getattr(package, part)(reader, reader.program) for part in ("_load_state_dict", "_load_constants")
    )
    with torch.no_grad():
        return serialize.ExportedProgramDeserializer(None).deserialize(serialized, state, constants, None)


class _CheckedReader:
    """
    PyTorch's reader of an archive, with the texts that are checked here.

    Two readers of an archive may find different entries of one name.
    """

    def __init__(self, path: Path) -> None:
        """Raises `ModelError` and `UnsupportedError` as `model_of_file`, and errors of damaged archives."""
        with zipfile.ZipFile(path) as archive:
            self._texts = _texts(archive)
            root = archive.namelist()[0].partition("/")[0] if self._texts else ""
            self._names = [name.removeprefix(f"{root}/") for name in archive.namelist()]
        programs = [name for name in self._texts if name.startswith("models/")]
        if len(programs) != 1:
            raise ModelError(f"is not a program of torch.export: it has {len(programs)} graphs")
        self.program = programs[0].removeprefix("models/").removesuffix(".json")
        """The name of the only program."""
        self._check()
        self.archive_file = package.PT2ArchiveReader(str(path)).archive_file
        """The elements of tensors."""

    def _check(self) -> None:
        """Check that nothing has to be unpickled, and nothing but formulas evaluated."""
        check_program(json.loads(self._texts[f"models/{self.program}.json"]))
        pickles = [item.format(self.program) for item in PICKLES if item.format(self.program) in self._names]
        for kind in ("weights", "constants"):
            config = f"data/{kind}/{self.program}_{kind}_config.json"
            if config in self._texts:
                pickles += _pickles_in(json.loads(self._texts[config]))
        if pickles:
            reason = f"it holds a pickle, which may run any code: {pickles[0]}"
            hint = "torch.export.load(FILE) reads a file that you trust; glow_mlir.from_torch takes what it gives"
            raise UnsupportedError(reason, hint=hint)

    def get_file_names(self) -> list[str]:
        """The names of the entries."""
        return self._names

    def read_bytes(self, name: str) -> bytes:
        """A text."""
        return self._texts[name]

    def read_string(self, name: str) -> str:
        """A text."""
        return self._texts[name].decode()


def _texts(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """The texts of an archive by their names in it; raises `ValueError` for one that would have to be inflated."""
    found: dict[str, bytes] = {}
    for item in archive.infolist():
        if item.filename.endswith(".json"):
            if item.compress_type != zipfile.ZIP_STORED:  # Else a small file may take any amount of memory.
                raise ValueError(f"{item.filename} is compressed")
            found[item.filename.partition("/")[2]] = archive.read(item)
    return found


def _pickles_in(config: Any) -> list[str]:
    """The payloads of a configuration that are pickles."""
    payloads = cast("dict[str, dict[str, Any]]", config["config"])
    return [
        name
        for name, item in payloads.items()
        if item.get("use_pickle") is not False or str(item.get("path_name", "")).startswith(OBJECTS)
    ]
