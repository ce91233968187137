"""Import optional packages, and hints for their installation."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from glow_mlir.errors import GlowError, OptionError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "check": ("onnxruntime>=1.24,<2",),
    "distributed": ("ray>=2.50,<3",),
    "generate": ("jinja2>=3.1.6,<4", "llguidance>=1.3,<2", "safetensors>=0.6,<1", "tokenizers>=0.22,<1"),
    "images": ("pillow>=11,<13",),
    "jax": ("jax>=0.6,<1",),
    "litert": ("ai-edge-litert>=2.3,<3",),
    "lsp": ("pygls>=2,<3",),
    "opencl": ("pyopencl>=2026.1,<2027",),
    "serve": (
        "grpcio>=1.80,<2",
        "httptools>=0.7,<1",
        "orjson>=3.11,<4",
        "protobuf>=6.31,<8",
        "starlette>=1.0,<2",
        "uvicorn>=0.50,<1",
        "uvloop>=0.22,<1",
    ),
    "strings": ("google-re2>=1.1,<2",),
    "tools": ("filecheck~=1.0.6", "rich>=14,<16", "shtab>=1.8,<2"),
    "torch": ("torch>=2.13,<3",),
    "training": ("safetensors>=0.6,<1",),
}
"""Extra of pyproject.toml → what it installs. Hints name the packages: that works however this one was installed."""


def to_install(extra: str) -> str:
    """The command that installs the packages of an extra."""
    return " ".join(["pip install", *(f"'{requirement}'" for requirement in EXTRAS[extra])])


def imported(module: str, extra: str, reason: str, *, error: type[GlowError] = OptionError, otherwise: str = "") -> Any:
    """
    Import a module of a package from an extra.

    If it is missing, raise an `error` with `reason`, "which is not installed", and the installation command, or
    `otherwise`. If its import fails, the error quotes the failure.
    """
    try:
        return import_module(module)
    except ImportError as failure:
        is_missing = isinstance(failure, ModuleNotFoundError) and f"{module}.".startswith(f"{failure.name}.")
        if not is_missing:
            words = " ".join(str(failure).split())
            raise error(f"{reason}, whose import fails: {type(failure).__name__}: {words}") from failure
        hint = ", or ".join(filter(None, (to_install(extra), otherwise)))
        raise error(f"{reason}, which is not installed", hint=hint) from failure
