"""
Arm's programs, which run as processes of their own: `tosa-opt`, the reference model, and `vela`.

They come with `pip install tosa-tools ethos-u-vela`, in an environment of its own, since they want an older numpy. The
environment variable `GLOW_TOSA_TOOLS` names the folder that they are in; without it, they are those on the PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from glow_mlir.errors import ExecutionError, GlowError, OptionError

FOLDER = "GLOW_TOSA_TOOLS"
"""The environment variable with the folder of the programs."""

OPT, MODEL, VELA = "tosa-opt", "tosa_reference_model", "vela"
CHECKS = (
    "--tosa-attach-target=specification_version=1.0 profiles=pro_int,pro_fp extensions=int16 level=8k",
    "--tosa-validate=strict-op-spec-alignment",
)
"""What `tosa-opt` checks: that a program is one of TOSA 1.0, of integers and floats, at the level 8K."""
DISTRIBUTIONS = {OPT: "tosa-tools", MODEL: "tosa-tools", VELA: "ethos-u-vela"}
"""Program → what has it."""


def program(name: str) -> str:
    """The path of a program; raises `OptionError` where there is none."""
    found = shutil.which(name, path=os.environ.get(FOLDER))
    if found is None:
        place = os.environ.get(FOLDER) or "the PATH"
        hint = f"pip install {DISTRIBUTIONS[name]} in an environment of its own, and set {FOLDER} to its bin folder"
        raise OptionError(f"there is no {name} in {place}", hint=hint)
    return found


def run(name: str, arguments: Sequence[str | Path], failure: type[GlowError] = ExecutionError) -> str:
    """What a program prints; raises `failure`, with its first error, where it fails."""
    # They have modules of their own.
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    command = [program(name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise failure(f"{name} failed: {_reason(done.stderr or done.stdout) or f'exit code {done.returncode}'}")
    return done.stdout


def _reason(output: str) -> str:
    """The first error that a program tells, with what it says of it on the next lines where it ends with a colon."""
    lines = [line.strip(" -\t") for line in output.splitlines() if line.strip()]
    first = next((place for place, line in enumerate(lines) if "error" in line.lower()), 0)
    last = first
    while last + 1 < len(lines) and lines[last].endswith(":"):
        last += 1
    return " ".join(lines[first : last + 1])


def serialize(text: Path, file: Path) -> None:
    """Make the flatbuffer of a module of TOSA; raises `GlowError` where TOSA does not take it."""
    run(OPT, [text, *CHECKS, f"--tosa-serialize=tosa-flatbuffer-filename={file}", "-o", os.devnull], GlowError)
