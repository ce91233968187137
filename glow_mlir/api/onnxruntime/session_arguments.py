"""Merge the session arguments of onnxruntime and ours into one set of keywords without conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, cast

from glow_mlir.api.compile_options import given_dimensions, names_of
from glow_mlir.api.model_identity import is_ir
from glow_mlir.api.models import accepted_model
from glow_mlir.api.onnxruntime.model_configuration import CarriedOptions
from glow_mlir.api.onnxruntime.providers import Providers, chosen_providers, session_keywords
from glow_mlir.api.onnxruntime.session_options import SessionOptions
from glow_mlir.api.session_keywords import KEYWORDS, check_keywords
from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Declared, declared
from glow_mlir.support.symbols import GivenDimension

STRICT_KEY = "session.strict_shape_type_inference"
"""The key of the configuration entry for the keyword `strict`."""


OF_ONNXRUNTIME = ("sess_options", "providers", "provider_options")
"""The constructor parameters that belong to onnxruntime."""

FACADE_KEYWORDS: Mapping[str, Declared] = {**KEYWORDS, **declared(CarriedOptions)}
"""Keyword of `InferenceSession` → its declaration."""


def given_keywords(of_onnxruntime: Sequence[object], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """
    The arguments of a session after its model, by name: onnxruntime's parameters, and all declared keywords.

    Raises `OptionError` for an unknown keyword, or a value of a wrong type.
    """
    check_keywords(keywords, "InferenceSession", ("path_or_bytes", *OF_ONNXRUNTIME), FACADE_KEYWORDS)
    defaults = {name: item.keyword_default for name, item in FACADE_KEYWORDS.items()}
    return {**dict(zip(OF_ONNXRUNTIME, of_onnxruntime, strict=True)), **defaults, **keywords}


def signature() -> Signature:
    """The signature of `InferenceSession` with all declared keywords, for `help` and notebooks."""
    own = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "path_or_bytes")]
    own += [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in OF_ONNXRUNTIME]
    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=item.keyword_default, annotation=item.keyword_type)
        for name, item in FACADE_KEYWORDS.items()
    ]
    return Signature([*own, *keywords])


def keyword_help() -> str:
    """A line for each keyword of `InferenceSession`, with its type and help text."""
    return "\n".join(f"    {name}: {item.kind.words}; {item.option.help}." for name, item in FACADE_KEYWORDS.items())


def settings_of(given: object) -> SessionOptions:
    """The given `SessionOptions`, or default ones; raises `OptionError` for anything else."""
    if given is None:
        return SessionOptions()
    if not isinstance(given, SessionOptions):
        hint = "glow_mlir.SessionOptions()"
        raise OptionError(f"sess_options cannot be of the type '{type(given).__name__}'", hint=hint)
    return given


def providers_of(
    settings: SessionOptions, providers: Providers | None, options: Sequence[Mapping[str, Any]] | None
) -> dict[str, dict[str, str]]:
    """The providers of a session, or else those of its options; raises `OptionError` as `chosen_providers`."""
    if providers is None and options is None and settings.has_providers():
        return chosen_providers(list(settings.providers), None)
    return chosen_providers(providers, options)


def model_of(given: object, settings: SessionOptions) -> Any:
    """The model with the constants from the options; raises `GlowError` if it does not have them."""
    model = accepted_model(given)
    if not settings.initializers and not settings.files:
        return model
    _check_onnx(model)
    from glow_mlir.frontends.onnx.replaced_initializers import with_constants

    arrays = {name: value.numpy() for name, value in settings.initializers.items()}
    return with_constants(model, arrays, settings.files)


def keywords_of(
    model: object, settings: SessionOptions, providers: Mapping[str, Mapping[str, str]], given: Mapping[str, Any]
) -> dict[str, Any]:
    """
    The keywords of a session: `given`, plus those from options and providers.

    Raises `OptionError` if two contradict each other.
    """
    found = dict(given)
    from_options = session_keywords(providers)
    if "intra_op_num_threads" in settings.given:
        _agree(from_options, "threads", settings.intra_op_num_threads)
    for name, value in from_options.items():
        _agree(found, name, value)
    if settings.enable_profiling:
        found["profile"] = True
    if settings.entries.get(STRICT_KEY) == "1":
        found["strict"] = True
    found["dimensions"] = _dimensions(model, settings, given_dimensions(given["dimensions"]))
    if left_out := settings.left_out:
        disabled = names_of("disable", given["disable"], "passes")
        found["disable"] = (*disabled, *(name for name in left_out if name not in disabled))
    return found


def _agree(keywords: dict[str, Any], name: str, value: object) -> None:
    """Set a keyword; raises `OptionError` if it has another value that is not its default."""
    keyword, default = keywords.get(name), KEYWORDS[name].default
    is_set = keyword is not None and not (isinstance(default, bool) and keyword is default)
    if is_set and keyword != value:
        raise OptionError(f"{name}={keyword!r} conflicts with options or providers: {value!r}", hint="set it once")
    keywords[name] = value


def _dimensions(model: Any, settings: SessionOptions, given: Mapping[str, GivenDimension]) -> dict[str, GivenDimension]:
    """The sizes of free dimensions; raises `OptionError` where two differ."""
    found: dict[str, GivenDimension] = dict(settings.dimensions)
    if settings.denotations:
        _check_onnx(model)
        from glow_mlir.frontends.onnx.signature import sizes_by_denotation

        found |= sizes_by_denotation(model, settings.denotations)
    for label, size in given.items():
        if found.setdefault(label, size) != size:
            raise OptionError(f"dimension '{label}' is {size} and {found[label]}", hint="bind it once")
    return found


def _check_onnx(model: object) -> None:
    """Raise `OptionError` for options of ONNX models on other models."""
    if is_ir(cast("Any", model)):
        hint = "they are for ONNX models"
        raise OptionError("options cannot set initializers or denotations of an MLIR module", hint=hint)
