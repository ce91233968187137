"""Write the optimized graph of a session as an ONNX model."""

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
from glow_mlir.support.symbols import GivenDimension


@dataclass(frozen=True)
class ExternalForm:
    """The path of a model, and the optional external file for its constants of at least some size."""

    path: Path
    constants: str = ""
    least_bytes: int = 1024


def onnx_form(model: Any, dimensions: Mapping[str, GivenDimension] | None) -> Any:
    """
    Export a model with an import method of its own to ONNX for these sizes; parameters become initializers of the same
    names.

    Raises `GlowError` for operations that ONNX cannot express.
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
    # As inputs, equal constants stay separate.
    opened, initializers = model.opened()
    module = import_any(opened, dimensions or {})
    # Results read only by PyTorch's gradients, such as pool indices, need no ONNX counterpart.
    CanonicalizePass().apply(new_context(), module)
    return exported_model(module, initializers)


def write_optimized(model: Any, options: CompileOptions, form: ExternalForm, source: str | None) -> None:
    """
    Write the optimized graph of a model to a file.

    Raises `GlowError` as the compilation does, for operators that ONNX cannot express, and if the file cannot be
    written or belongs to the model itself (`source` is the file that the model was made from).
    """
    from glow_mlir.driver.pipelines import OPTIMIZED
    from glow_mlir.frontends.onnx.export.exporter import exported_model, save_model

    read = () if source is None else files_of(Path(source))
    module = options.compilation(import_any(model, options.dimensions)).run(OPTIMIZED.name)
    save_model(exported_model(module), form.path, form.constants, form.least_bytes, read)
