"""Compile models to a bundle: the implementation of `glow-compile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.bundle.compile import Bundle, binding_quantization, check_limits, compile_bundle, joined, wanted_names
from glow_mlir.bundle.interface import ObjectForm
from glow_mlir.bundle.layout import entry_names
from glow_mlir.bundle.names import bundle_identifier
from glow_mlir.driver.pipelines import OPTIMIZED
from glow_mlir.errors import OptionError, OutOfMemoryError
from glow_mlir.ir.python_values import refuse_python_values
from glow_mlir.options.compilation import FULL_PRECISION
from glow_mlir.options.quantization import Quantization

RUN = "run"
"""The default entry name of a bundle with one entry."""


def bundle_of(
    models: Mapping[str, Any],
    name: str,
    options: CompileOptions,
    form: ObjectForm | None = None,
    quantize: Mapping[str, Quantization] | None = None,
) -> Bundle:
    """
    Compile models to a bundle. `models` maps entry names to models as `InferenceSession` takes them; an empty name
    stands for `run`, or for the functions of a module.

    All global symbols begin with `name`, as far as C allows its characters. `quantize` gives the quantization of each
    entry; otherwise the options apply to all. Raises `GlowError` for any error in models or options.
    """
    form = form or ObjectForm()
    own = {entry: replace(options, quantize=found) for entry, found in (quantize or {}).items()}
    if unknown := own.keys() - models.keys():
        raise OptionError(f"there is no entry '{unknown.pop()}' to quantize", hint=f"there are {', '.join(models)}")
    return _within_limits(models, name, {entry: own.get(entry, options) for entry in models}, form)


def _within_limits(
    models: Mapping[str, Any], name: str, options: Mapping[str, CompileOptions], form: ObjectForm
) -> Bundle:
    """The bundle within the memory limits of its target; raises `OutOfMemoryError` if it does not fit."""
    bundle = _compiled(models, name, options, form)
    try:
        check_limits(bundle)
    except OutOfMemoryError as error:
        # The stack size is known only from machine code: if activations and stack together are too large, reduce
        # activations.
        limit, stack = bundle.layout.target.limits.ram_bytes, bundle.report.stack
        if not limit or bundle.report.ram <= limit or stack >= limit:
            raise
        try:
            less = {entry: own.with_field("ram_bytes", limit - stack) for entry, own in options.items()}
            smaller = _compiled(models, name, less, form)
            bundle = replace(smaller, layout=replace(smaller.layout, target=bundle.layout.target))
            check_limits(bundle)
        except OutOfMemoryError:
            raise error from None
    return bundle


def _compiled(models: Mapping[str, Any], name: str, options: Mapping[str, CompileOptions], form: ObjectForm) -> Bundle:
    """The bundle, with only its activations limited."""
    modules = {
        entry: import_any(accepted_model(model), options[entry].dimensions, strict=options[entry].strict)
        for entry, model in models.items()
    }
    for module in modules.values():
        refuse_python_values(module, "a bundle")
    wanted = [(entry, wanted_names(entry, module)) for entry, module in modules.items()]
    if not any(found for _, found in wanted):
        raise OptionError("there is no function to call", hint="a bundle takes at least one entry")
    bundle = bundle_identifier(name)
    names = entry_names(bundle, [own if entry or len(found) > 1 else RUN for entry, found in wanted for own in found])
    exchanged = binding_quantization(modules.values(), bundle, names)
    (module, *others), (rest, *_) = modules.values(), options.values()
    if others:
        # Transformations that depend on names in a model run while it is still alone.
        optimized = {entry: options[entry].compilation(module).run(OPTIMIZED.name) for entry, module in modules.items()}
        module = joined(optimized, names)
        rest = replace(rest, quantize=None, precision=FULL_PRECISION, keep_precision=(), weights=FULL_PRECISION)
    compilation = replace(rest, fields={"threads": 1, **rest.fields}).compilation(module)
    return compile_bundle(compilation, bundle, names, form, exchanged)
