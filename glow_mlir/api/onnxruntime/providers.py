"""Execution providers, onnxruntime's term for backends: our provider, and the CPU provider as its synonym."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from glow_mlir.api.session_keywords import KEYWORDS
from glow_mlir.errors import OptionError
from glow_mlir.support.activity import callers_level, caution
from glow_mlir.support.arguments import truth

GLOW = "GlowExecutionProvider"
CPU = "CPUExecutionProvider"
AVAILABLE = (GLOW, CPU)

ELSEWHERE = frozenset(
    f"{name}ExecutionProvider"
    for name in (
        *("ACL", "ArmNN", "Azure", "CANN", "CUDA", "CoreML", "Dml", "Dnnl", "Js", "MIGraphX", "Nnapi", "NvTensorRTRTX"),
        *("OpenVINO", "QNN", "ROCM", "Rknpu", "SNPE", "Tensorrt", "Tvm", "VSINPU", "VitisAI", "WebGpu", "WebNN"),
        "Xnnpack",
    )
)
"""Providers of some onnxruntime builds; programs that name one continue without it."""

Providers = Sequence[str | tuple[str, Mapping[str, Any]]]


_READERS: Mapping[Any, Callable[[str], Any]] = {str: str, bool: truth, int: int}
"""Type of a keyword → parser of its text, which returns `None` or raises `ValueError` for invalid text."""

PROVIDER_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    name: _READERS[item.type] for name, item in sorted(KEYWORDS.items()) if item.type in _READERS
}
"""The options of our provider: the keywords of `InferenceSession` with a text form → their parsers."""


def get_available_providers() -> list[str]:
    """The providers of this machine."""
    return list(AVAILABLE)


def get_all_providers() -> list[str]:
    """All known providers."""
    return list(AVAILABLE)


def chosen_providers(given: Providers | None, options: Sequence[Mapping[str, Any]] | None) -> dict[str, dict[str, str]]:
    """
    The available providers that a user names, with their options as texts; all providers if none is named.

    A provider of other onnxruntime builds causes a `UserWarning`, and the CPU is always available, as in onnxruntime.
    Raises `OptionError` for other names, an empty list, and unknown options.
    """
    if given is None:
        if options is not None:
            raise OptionError("provider_options need providers", hint=f"providers=['{GLOW}']")
        return {name: {} for name in AVAILABLE}
    pairs = named_providers(given, options)
    found = {name: texts for name, texts in pairs if name in AVAILABLE}
    missing = [name for name, _ in pairs if name not in AVAILABLE]
    unknown = [name for name in missing if name not in ELSEWHERE]
    if unknown or not pairs:
        reason = f"Unknown Provider Type: {', '.join(unknown)}" if unknown else "the list of providers is empty"
        raise OptionError(reason, hint=f"providers=['{CPU}']")
    for name in missing:
        warnings.warn(f"there is no provider '{name}' here: the model runs on the CPU", stacklevel=callers_level())
    for name, texts in found.items():
        _check_options(name, texts)
    return found or {CPU: {}}


def session_keywords(providers: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """
    The keywords of `InferenceSession` from the options of our provider; raises `OptionError` for an invalid value.
    """
    found: dict[str, Any] = {}
    for name, value in providers.get(GLOW, {}).items():
        try:
            found[name] = PROVIDER_OPTIONS[name](value)
        except ValueError:
            found[name] = None
        if found[name] is None:
            raise OptionError(f"{name}='{value}' is invalid as an option of '{GLOW}'")
    return found


def named_providers(given: Providers, options: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, dict[str, str]]]:
    """
    Each named provider, available or not, with its options as texts.

    A provider named twice causes a warning, and the first options count. Raises `OptionError` for anything else.
    """
    hint = f"providers=['{CPU}']"
    for title, value in (("providers", given), ("provider_options", options)):
        # Untyped callers may pass anything.
        if isinstance(value, str) or not isinstance(cast("object", value), Sequence | None):
            raise OptionError(f"{title}={value!r} is no list of {title.replace('_', ' ')}", hint=hint)
    if options is None:
        items: list[Any] = [(item, {}) if isinstance(item, str) else item for item in given]
    elif len(options) == len(given):
        items = list(zip(given, options, strict=True))
    else:
        raise OptionError(f"there are {len(options)} provider_options for {len(given)} providers", hint="one for each")
    found: dict[str, dict[str, str]] = {}
    for item in items:
        match item:
            case (str(name), Mapping()) if name in found:
                caution(OptionError(f"the provider '{name}' is listed twice", hint="the first options apply"))
            case (str(name), Mapping()):
                texts = cast("Mapping[Any, Any]", item[1])
                found[name] = {str(key): str(value) for key, value in texts.items()}
            case _:
                raise OptionError(f"{item!r} is no provider", hint=f"a name, or a pair as ('{GLOW}', {{'threads': 2}})")
    return list(found.items())


def _check_options(name: str, texts: Mapping[str, str]) -> None:
    """Raise `OptionError` for options that a provider does not have."""
    known = tuple(PROVIDER_OPTIONS) if name == GLOW else ()
    for key in texts:
        if key not in known:
            hint = f"it has {', '.join(known)}" if known else f"'{GLOW}' has some: {', '.join(PROVIDER_OPTIONS)}"
            raise OptionError(f"the provider '{name}' has no option '{key}'", hint=hint)
