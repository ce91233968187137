"""Session options stored in an ONNX model's metadata, used if the caller or the environment asks for them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, cast

from glow_mlir.api.onnxruntime.model_metadata import model_metadata
from glow_mlir.api.onnxruntime.session_options import ExecutionMode, GraphOptimizationLevel, SessionOptions
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.options.declaration import Options, option
from glow_mlir.support.activity import caution
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import Kind, is_flag


@dataclass(frozen=True, eq=False, repr=False)
class CarriedOptions(Options):
    """The options in a model's metadata."""

    GROUP = "session"

    read_config_from_model: bool | int | None = option(
        None,
        "whether options stored in a model apply unless overridden",
        kind=Kind("a truth value", is_flag, "True"),
    )


VARIABLE = "ORT_LOAD_CONFIG_FROM_MODEL"
"""The environment variable that is 1 if sessions should read options from models, unless a keyword overrides it."""

NOTE = "ort_config"
"""The metadata key of the options: JSON such as `{"session_options": {"intra_op_num_threads": 2}}`."""


def _member(kind: type[IntEnum]) -> Callable[[Any], Any]:
    """A member of an enumeration by its number."""

    def read(value: Any) -> Any:
        return next((item for item in kind if item == value), None)

    return read


READERS: Mapping[str, Callable[[Any], Any]] = {
    "intra_op_num_threads": whole_number,
    "inter_op_num_threads": whole_number,
    "execution_mode": _member(ExecutionMode),
    "graph_optimization_level": _member(GraphOptimizationLevel),
    "enable_profiling": whole_number,
}
"""
Option that a model may store, by its name in `SessionOptions` → its parser, which returns `None` for invalid values.
"""


def is_asked_for(keyword: bool | int | None) -> bool:
    """Whether to read the options of a model, as the keyword or else the environment says."""
    return os.environ.get(VARIABLE) == "1" if keyword is None else bool(keyword)


def add_carried_options(settings: SessionOptions, model: Any) -> None:
    """
    Apply the options stored in a model, except those already set.

    Raises `ModelError` for invalid JSON or option values; unknown options cause a warning.
    """
    if (text := model_metadata(model).custom_metadata_map.get(NOTE)) is None:
        return
    for name, value in _carried(text).items():
        if name not in READERS:
            hint = f"known are {', '.join(READERS)}"
            caution(OptionError(f"the note '{NOTE}' of the model has an unknown option '{name}'", hint=hint))
        elif name not in settings.given:
            try:
                setattr(settings, name, READERS[name](value))
            except OptionError as error:
                raise ModelError(f"its note '{NOTE}' says {name}={value!r}, which is invalid") from error


def _carried(text: str) -> dict[str, Any]:
    """The options in the metadata; raises `ModelError` for anything else."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    options: object = cast("dict[str, object]", found).get("session_options", {}) if isinstance(found, dict) else None
    if not isinstance(options, dict):
        raise ModelError(f"its note '{NOTE}' is no configuration", hint='JSON, as {"session_options": {}}')
    return cast("dict[str, Any]", options)
