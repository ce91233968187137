"""From models to a bundle: what `glow-compile` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.bundle.compile import Bundle, check_limits, compile_bundle, joined, wanted_names
from glow_mlir.bundle.interface import ObjectForm
from glow_mlir.bundle.layout import entry_names
from glow_mlir.bundle.names import bundle_identifier
from glow_mlir.errors import OptionError, OutOfMemoryError

RUN = "run"
"""What the entry of a bundle is called that has one, where nobody names it."""


def bundle_of(models: Mapping[str, Any], name: str, options: CompileOptions, form: ObjectForm | None = None) -> Bundle:
    """
    Compile models to a bundle: entry → model, as `InferenceSession` takes it; an empty name stands for `run`, or for
    those of the functions of a module.

    All global symbols begin with the `name`, as far as C takes it. Raises `GlowError` for whatever is wrong.
    """
    form = form or ObjectForm()
    bundle = _compiled(models, name, options, form)
    try:
        check_limits(bundle)
    except OutOfMemoryError as error:
        # Only machine code knows its stack: where that alone is too much, activations have to make room for it.
        limit, stack = bundle.layout.target.ram_bytes, bundle.report.stack
        if not limit or bundle.report.ram <= limit or stack >= limit:
            raise
        try:
            smaller = _compiled(models, name, replace(options, ram_bytes=limit - stack), form)
            bundle = replace(smaller, layout=replace(smaller.layout, target=bundle.layout.target))
            check_limits(bundle)
        except OutOfMemoryError:
            raise error from None
    return bundle


def _compiled(models: Mapping[str, Any], name: str, options: CompileOptions, form: ObjectForm) -> Bundle:
    """The bundle, with activations within its limit alone."""
    modules = {entry: import_any(accepted_model(model), options.dimensions) for entry, model in models.items()}
    wanted = [(entry, wanted_names(entry, module)) for entry, module in modules.items()]
    if not any(found for _, found in wanted):
        raise OptionError("there is no function to call", hint="a bundle takes at least one entry")
    bundle = bundle_identifier(name)
    names = entry_names(bundle, [own if entry or len(found) > 1 else RUN for entry, found in wanted for own in found])
    module = joined(modules, names)
    compilation = replace(options, threads=options.threads or 1).compilation(module)
    return compile_bundle(compilation, bundle, names, form)
