"""The graph of a session after its optimization, written as an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.model_identity import files_of
from glow_mlir.api.models import import_any
from glow_mlir.errors import UnsupportedError
from glow_mlir.support.activity import caution
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Dimension


@dataclass(frozen=True)
class ExternalForm:
    """The file of a model, and the one beside it, if any, for its constants of so many bytes and more."""

    path: Path
    constants: str = ""
    least_bytes: int = 1024


def onnx_form(model: Any, dimensions: Mapping[str, Dimension] | None) -> Any:
    """
    The ONNX model of one that imports itself, of these sizes; parameters are initializers of their names.

    Raises `GlowError` for what ONNX has no words for.
    """
    from glow_mlir.frontends.onnx.export.exporter import exported_model
    from glow_mlir.ir.context import new_context
    from glow_mlir.transforms.graph.canonicalize import CanonicalizePass

    if model.changes:
        hint = "export the module behind its eval(): steps train batch normalizations all the same"
        raise UnsupportedError(f"a call of the model changes '{min(model.changes)}'", hint=hint)
    if model.gradient_stops:
        hint = "train the module through torch.compile(model, backend='glow')"
        reason = f"gradients end at '{model.gradient_stops[0]}', which a session does not support"
        raise UnsupportedError(reason, hint=hint)
    for name in model.padded():
        caution(UnsupportedError(f"all rows of '{name}' are trained", hint="sessions have no padding_idx"))
    # As inputs, constants that are equal stay apart.
    opened, initializers = model.opened()
    module = import_any(opened, dimensions or {})
    # Results that gradients of PyTorch's own read, as the indices of pools, need no words.
    CanonicalizePass().apply(new_context(), module)
    return exported_model(module, initializers)


def write_optimized(model: Any, options: CompileOptions, form: ExternalForm, source: str | None) -> None:
    """
    Write the optimized graph of a model to a file.

    Raises `GlowError` as the compilation, for operators that ONNX has no words for, and where the file cannot be
    written, or is one of the model's own: of `source`, where the model was made of what that file has.
    """
    from glow_mlir.driver.pipelines import OPTIMIZED
    from glow_mlir.frontends.onnx.export.exporter import exported_model, save_model

    read = () if source is None else files_of(Path(source))
    module = options.compilation(import_any(model, options.dimensions)).run(OPTIMIZED.name)
    save_model(exported_model(module), form.path, form.constants, form.least_bytes, read)
