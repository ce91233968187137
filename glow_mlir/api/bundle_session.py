"""`load_bundle`: a bundle for this machine as a session, without the compiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from glow_mlir.api.reopening import Recipe
from glow_mlir.api.session_entry import EntrySession
from glow_mlir.errors import InputError
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.runtime.executable import MAIN
from glow_mlir.runtime.machine_code import MachineCode


class BundleSession(EntrySession):
    """
    A bundle, ready to run: what `InferenceSession` is to a model, but for what compiles.

    Its entry is `main`, if there is such, or the first. Several threads may call `run` at once. Calls of entries with
    state follow one another.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self._folder = folder.absolute()
        self.name, functions, artifact = read_bundle(folder, name)
        super().__init__(MachineCode(artifact), functions, MAIN if MAIN in functions else next(iter(functions)))

    def _recipe(self) -> Recipe:
        return Recipe(load_bundle, self._folder, {"name": self.name})


def load_bundle(folder: str | os.PathLike[str], name: str | None = None) -> BundleSession:
    """
    The bundle in a folder, which `glow-compile` wrote for this machine; `name` says which, where there are several.

    Neither xDSL nor onnx is imported. Raises `InputError` for a folder without a bundle, or with a damaged one, and
    `OptionError` for one whose code this machine cannot run.
    """
    if not isinstance(cast("object", folder), str | os.PathLike):
        raise InputError(f"a '{type(folder).__name__}' is no path", hint="the folder that glow-compile wrote")
    return BundleSession(Path(folder), name)
