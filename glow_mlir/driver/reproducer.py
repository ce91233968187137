"""Reproducer files: a module with the command on which the compiler fails."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.errors import CacheError, OptionError
from glow_mlir.ir.text import WEIGHTS_SUFFIX, digests, module_text, one_line, write_text
from glow_mlir.runtime.cache_folder import CacheFolder
from glow_mlir.runtime.own_folder import OwnFolder

MAX_REPRODUCERS = 16
"""Maximum number of reproducers in the cache."""

_FOLDER = CacheFolder("reproducers-v1")
_SUFFIX = ".mlir"
_CONFIGURATION = "// configuration: "


def write_reproducer(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    failure: BaseException,
    path: Path | None = None,
    *,
    verify_each: bool = True,
) -> Path:
    """
    Write a reproducer for the failure of the last of `passes` on `module`, with its weights; returns the file.

    `glow-opt FILE --run-reproducer` runs it again. Without `path`, the file is named by its content and stored in the
    cache, which keeps the `MAX_REPRODUCERS` newest; raises `GlowError` if neither can be written.
    """
    pipeline = f"builtin.module({','.join(map(str, passes))})"
    options = ["--pass-pipeline", pipeline, f"--verify-each={int(verify_each)}"]
    header = [
        f"// reproducer of {type(failure).__name__}: {one_line(failure)}",
        "// run it again: glow-opt THIS_FILE --run-reproducer",
        f"{_CONFIGURATION}{shlex.join(options)}",
    ]
    text = "\n".join([*header, module_text(module, locations=True)])
    if path is None:
        with _FOLDER.opened(make=True) as folder:
            if folder is None:
                hint = "name another folder in GLOW_CACHE_DIR"
                raise CacheError("cannot be written", file=str(_FOLDER.path), hint=hint)
            path = _FOLDER.path / f"glow-reproducer-{hashlib.sha256(text.encode()).hexdigest()[:8]}{_SUFFIX}"
            write_text(text, path, digests(module))
            _trim(folder)
        return path
    write_text(text, path, digests(module))
    return path


def _trim(folder: OwnFolder) -> None:
    """Remove all but the newest reproducers, with their weights."""
    ages = {Path(name).stem: status.st_mtime for name, status in folder.entries() if name.endswith(_SUFFIX)}
    for stem in sorted(ages, key=lambda stem: ages[stem], reverse=True)[MAX_REPRODUCERS:]:
        for suffix in (_SUFFIX, WEIGHTS_SUFFIX):
            folder.remove(stem + suffix)


def reproducer_options(text: str, file: str = "") -> list[str]:
    """The options of `glow-opt` in the header of a reproducer; raises `OptionError` if there is none."""
    for line in text.splitlines():
        if line.startswith(_CONFIGURATION):
            return shlex.split(line.removeprefix(_CONFIGURATION))
    raise OptionError(f"no line begins with '{_CONFIGURATION.strip()}': this is no reproducer", file=file)
