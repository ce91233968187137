"""Where onnxruntime has its Python classes, which programs import from here, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import glow_mlir
from glow_mlir.api.onnxruntime.providers import Providers, named_providers


def check_and_normalize_provider_args(
    providers: Providers | None,
    provider_options: Sequence[Mapping[str, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """The names of providers, and the options of each as texts; raises `OptionError` for anything else."""
    pairs = [] if providers is None else named_providers(providers, provider_options)
    return [name for name, _ in pairs], [texts for _, texts in pairs]


def __getattr__(name: str) -> Any:
    """The names of the package."""
    return getattr(glow_mlir, name)
