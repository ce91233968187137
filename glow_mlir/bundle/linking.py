"""Link objects of bundles to libraries, with any available linker."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError

SUFFIXES = {"archive": ".a", "shared": ".so", "wasm": ".wasm"}
"""Form of an output → its file suffix."""


def linked(objects: Sequence[Path], library: Path, form: str, target: Target, exported: Sequence[str]) -> None:
    """
    Link objects to a library, `shared` or `wasm`, that exports the given functions.

    Raises `OptionError` if the target has no such libraries, if there is no linker, and if linking fails.
    """
    is_wasm = target.architecture.startswith("wasm")
    if (form == "wasm") != is_wasm or (not is_wasm and "linux" not in target.triple):
        raise OptionError(f"there is no form '{form}' for {target.triple}", hint="--emit object, or archive")
    flags = ["--no-entry", *(f"--export={name}" for name in exported)] if is_wasm else ["-shared", "--no-undefined"]
    if is_wasm:
        # The loading program places the regions after the module's own memory.
        flags += ["--export=__heap_base"]
    linker = next(_linkers("wasm-ld" if is_wasm else "ld.lld", target), None)
    if linker is None:
        name = "wasm-ld" if is_wasm else "ld or ld.lld"
        raise OptionError(f"there is no linker for {target.triple}", hint=f"install {name}, or ziglang from PyPI")
    done = subprocess.run(
        [*linker, *flags, *map(str, objects), "-o", str(library)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise OptionError(f"{linker[0]} fails: {lines[0] if lines else done.returncode}", file=library.name)


def _linkers(name: str, target: Target) -> Iterator[list[str]]:
    """The linkers of this machine that support a target, the preferred first."""
    if found := shutil.which(name):
        yield [found]
    if target.architecture == platform.machine() and (found := shutil.which("ld")):
        yield [found]
    if find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", name]
