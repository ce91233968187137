"""How a process imports the compiler in less time."""

from __future__ import annotations

import sys

from glow_mlir.support import onnx_loader
from glow_mlir.xdsl_patches import loader as xdsl_loader


def import_fast() -> None:
    """
    Import what is not yet imported of xDSL and onnx as their loaders do it: definitions are made on first use.

    Nothing happens if the caller has imported xDSL, which then goes on as it began.
    """
    if "xdsl" not in sys.modules:
        xdsl_loader.install()
        onnx_loader.install()
