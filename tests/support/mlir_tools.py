"""Where MLIR's own tools are: named by the environment, unpacked by `make mlir-tools`, or nowhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the checkout."""

MLIR_TOOLS = {"mlir-opt": "GLOW_MLIR_OPT", "mlir-translate": "GLOW_MLIR_TRANSLATE"}
"""Tools of MLIR that a test may REQUIRE, each with the environment variable that names its path."""


def find_mlir_tool(name: str) -> str | None:
    """
    Return the path of one of `MLIR_TOOLS`, or None where it is not installed.

    `mlir-opt` on the PATH is not looked at: distributions ship releases whose syntax is too old for ours. A
    path that the environment names wrongly raises: falling back would skip tests that somebody asked for.
    """
    if named := os.environ.get(variable := MLIR_TOOLS[name]):
        if path := shutil.which(named):
            return path
        raise FileNotFoundError(f"{variable} names {named!r}, which is not an executable file")
    return shutil.which(name, path=str(ROOT / ".mlir-tools" / "bin"))


def available_features() -> frozenset[str]:
    """Return the features that a REQUIRES line can count on: the names of the tools that are here."""
    return frozenset(name for name in MLIR_TOOLS if find_mlir_tool(name))
