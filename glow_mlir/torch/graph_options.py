"""The options of `torch.compile(module, backend="glow", options=…)`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from glow_mlir.api.session_keywords import KEYWORDS, check_keywords
from glow_mlir.errors import OptionError
from glow_mlir.support.activity import caution
from glow_mlir.support.dataclass import dataclass

DEFAULT_FALLBACK = "GLOW_FALLBACK"
"""The environment variable with the default of the option `fallback`."""

FALLBACKS = ("pytorch", "error")
"""The values of `fallback`: after a failure to compile, PyTorch computes, or the error is raised."""

MODES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "reduce-overhead": {},
    "max-autotune": {"tune": True},
    "max-autotune-no-cudagraphs": {"tune": True},
}
"""The modes of PyTorch's own compiler → the keywords of a session with the nearest meaning."""


@dataclass(frozen=True)
class GraphOptions:
    """The keywords of the sessions of graphs, and what to do if a graph cannot be compiled."""

    session: Mapping[str, Any]
    fallback: str = FALLBACKS[0]
    constants: bool = True
    """Whether weights are constants in inference; otherwise each call reads them."""

    @property
    def raises(self) -> bool:
        """Whether a failure to compile is an error."""
        return self.fallback == "error"


def graph_options(given: Mapping[str, Any] | None = None, mode: str | None = None) -> GraphOptions:
    """
    The options of a compilation; PyTorch sets the default number of threads.

    A mode or an option of PyTorch's own compiler, inductor, has no effect or the nearest one, and is warned of. Raises
    `OptionError` for unknown options and for values of a wrong type.
    """
    if mode is not None and mode not in MODES:
        raise OptionError(f"mode='{mode}' is unknown", hint=f"modes are {', '.join(MODES)}")
    keywords = dict(given or {})
    fallback = keywords.pop("fallback", os.environ.get(DEFAULT_FALLBACK) or FALLBACKS[0])
    if fallback not in FALLBACKS:
        raise OptionError(f"fallback={fallback!r} is invalid", hint=f"values are {', '.join(map(repr, FALLBACKS))}")
    constants = keywords.pop("constants", True)
    if not isinstance(constants, bool):
        raise OptionError(f"constants={constants!r} is invalid", hint="values are True, False")
    foreign = sorted(name for name in keywords if name not in KEYWORDS and _is_of_inductor(name))
    for name in foreign:
        del keywords[name]
    if foreign:
        caution(OptionError(f"options of inductor have no effect on this backend: {', '.join(foreign)}"))
    implied = MODES[mode or "default"]
    if mode not in (None, "default"):
        meaning = ", ".join(f"{name}={value}" for name, value in implied.items())
        effect = f"is read as options={{{meaning}}}" if meaning else "has no effect on this backend"
        caution(OptionError(f"mode='{mode}' of inductor {effect}"))
    session = {"threads": torch.get_num_threads(), **implied, **keywords}
    check_keywords(session, own=("constants", "fallback"))
    return GraphOptions(session, str(fallback), constants)


def _is_of_inductor(name: str) -> bool:
    """Whether PyTorch's own compiler has an option of this name."""
    from torch import _inductor

    return name in _inductor.list_options()
