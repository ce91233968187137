"""`load_bundle`: run a bundle for this machine as a session, without the compiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from glow_mlir.api.onnxruntime.run_options import RunOptions
from glow_mlir.api.onnxruntime.session_facade import Result, SessionFacade
from glow_mlir.api.reopening import Recipe
from glow_mlir.api.session import Session
from glow_mlir.api.session_entry import SessionEntry
from glow_mlir.errors import InputError, OptionError
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.runtime.executable import MAIN
from glow_mlir.runtime.machine_code import MachineCode
from glow_mlir.support.activity import caution


class BundleSession(SessionFacade):
    """
    A bundle, ready to run: like `InferenceSession` for a model, without the members that concern compilation.

    Its entry is `main` if there is one, otherwise the first. Several threads may call `run` at once. Calls of entries
    with state run one after the other.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self._folder = folder.absolute()
        self.name, functions, artifact = read_bundle(folder, name)
        self._cautioned = set[str]()
        super().__init__(
            Session(MachineCode(artifact), functions, MAIN if MAIN in functions else next(iter(functions)))
        )

    def _watched(self, run_options: RunOptions | None, call: Callable[[], Result], entry: SessionEntry) -> Result:
        def warned() -> Result:
            if run_options is not None:
                self._caution("time_limit", bool(run_options.time_limit))
            result = call()
            if run_options is not None:  # If it was already set, the call has not started.
                self._caution("terminate", run_options.terminate)
            return result

        return super()._watched(run_options, warned, entry)

    def _caution(self, option: str, is_ignored: bool) -> None:
        """Warn once about an option that would interrupt loops: the code of bundles cannot be interrupted."""
        if is_ignored and option not in self._cautioned:
            self._cautioned.add(option)
            hint = "sessions of the model support it"
            caution(OptionError(f"{option} cannot interrupt bundles", hint=hint))

    def _recipe(self) -> Recipe[BundleSession]:
        return Recipe(load_bundle, self._folder, {"name": self.name})


def load_bundle(folder: str | os.PathLike[str], name: str | None = None) -> BundleSession:
    """
    Load the bundle in a folder, which `glow-compile` wrote for this machine; `name` selects one of several.

    Neither xDSL nor onnx is imported. Raises `InputError` for a folder without a bundle, or with a damaged one, and
    `OptionError` for code that this machine cannot run.
    """
    if not isinstance(cast("object", folder), str | os.PathLike):
        raise InputError(f"a '{type(folder).__name__}' is no path", hint="the folder that glow-compile wrote")
    return BundleSession(Path(folder), name)
