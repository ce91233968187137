"""Models with values in Python, such as sequence inputs; only the compiler finds out which models have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glow_mlir.errors import HostValuesError
from glow_mlir.runtime.executable import Executable
from glow_mlir.support.activity import telling_once

Compile = Callable[[Any], tuple[Executable, dict[str, float]]]
"""Compiles a model; returns its executable, and the seconds of each stage."""


def with_host_values(
    model: Any, compile_: Compile, strict: bool, reported: set[str]
) -> tuple[Executable, dict[str, float]]:
    """
    The executable of a model, compiled as a whole, or in parts if Python computes some of its values.

    With `strict`, faults of such a model are errors instead of warnings. `reported` holds the warnings that are not
    repeated.
    """
    try:
        return compile_(model)
    except HostValuesError:
        from glow_mlir.frontends.onnx.hosted_model import HostedModel
        from glow_mlir.frontends.onnx.importer import whole_model

        with telling_once(reported):
            whole = whole_model(model, strict)
        return HostedModel(whole, lambda part: compile_(part)[0].entry(), strict), {}
