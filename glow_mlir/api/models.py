"""The kinds of models that users may pass, and their import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from glow_mlir.api.model_identity import is_importable, is_ir, is_opened
from glow_mlir.errors import ModelError, OptionError
from glow_mlir.support.file_kinds import BEGINNING, EXPORTED, PROGRAMS, TFLITE, is_stablehlo, is_tflite
from glow_mlir.support.optional_packages import imported
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

STABLEHLO = "StableHLO"
"""What models of the other kind than `TFLITE` are called here."""


def accepted_model(model: Any) -> Any:
    """Normalize a model: paths to `Path`, bytes to `bytes`; raises `OptionError` for unsupported types."""
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(cast("bytes | bytearray | memoryview", model))
        return own_model(data) or data
    if isinstance(model, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", model))
        if "\0" in str(path):
            raise OptionError(f"expected a path, got {str(path)!r}", hint="pass the content of a model as bytes")
        return own_model(path) or path
    # Recognized by attributes, as in `is_ir`: a `ModuleOp`, or a `ModelProto` but no other message.
    is_module = hasattr(model, "walk") and getattr(model, "name", "") == "builtin.module"
    is_own = is_module or is_importable(model) or is_opened(model)
    if is_own or (hasattr(model, "SerializeToString") and hasattr(model, "ir_version")):
        return model
    hint = "give a path, the bytes of a model of ONNX, TensorFlow Lite or StableHLO, a ModelProto or a ModuleOp"
    if hasattr(model, "state_dict"):
        hint = "glow_mlir.from_torch and glow_mlir.torch.exported take modules of PyTorch"
    elif callable(model):
        hint = "glow_mlir.from_jax and glow_mlir.from_keras take functions of JAX and models of Keras"
    raise OptionError(f"a model cannot be of the type '{type(model).__name__}'", hint=hint)


def own_model(source: Path | bytes) -> Any:
    """The model of a file, or of its content, of TensorFlow Lite, StableHLO or PyTorch; `None` for any other."""
    if isinstance(source, Path) and source.suffix == EXPORTED and source.is_file():
        return _exported_program(source)
    if isinstance(source, bytes):
        kind = TFLITE if is_tflite(source) else STABLEHLO if is_stablehlo(source) else ""
    else:
        kind = TFLITE if source.suffix == TFLITE else STABLEHLO if _holds_stablehlo(source) else ""
    if kind == TFLITE:
        from glow_mlir.frontends.tflite.model import TfliteModel

        return TfliteModel(source)
    if kind == STABLEHLO:
        from glow_mlir.frontends.stablehlo.model import StablehloModel

        return StablehloModel(source)
    return None


def _exported_program(path: Path) -> Any:
    """The model of a file of `torch.export.save`, which PyTorch reads; raises `OptionError` if it is not installed."""
    imported("torch", "torch", f"{path} is a program of torch.export, to be read by PyTorch")
    return import_module("glow_mlir.torch.program_file").model_of_file(path)


def _holds_stablehlo(path: Path) -> bool:
    """Whether a file is a program of StableHLO; a file that cannot be read is none."""
    if path.suffix not in PROGRAMS:
        return False
    try:
        with path.open("rb") as file:
            return is_stablehlo(file.read(BEGINNING))
    except OSError:
        return False


def import_any(
    model: Any,
    dimensions: Mapping[str, GivenDimension],
    by_content: bool = True,
    in_memory: bool = False,
    values: Mapping[str, np.ndarray] | None = None,
    strict: bool = False,
) -> ModuleOp:
    """
    The module of an ONNX model or a `.mlir` file, or a copy of a module; of any stage down to `allocated`.

    `by_content` tells whether digests of an ONNX model's weights depend on their content, see `import_model`. Weights
    are mapped from their files, which must not change while the module is used, unless they are `in_memory`. Inputs in
    `values` become constants. With `strict`, recoverable faults of an ONNX model are errors instead of warnings.
    """
    if is_importable(model):
        return model.module(dimensions, by_content, values)
    if not is_ir(model):
        from glow_mlir.frontends.onnx.importer import import_model

        return import_model(model, dimensions, by_content=by_content, in_memory=in_memory, values=values, strict=strict)
    if dimensions or values:
        reason = "an MLIR module has no free dimensions"
        raise OptionError(reason, hint="bind sizes when importing the ONNX model")
    from glow_mlir.ir.context import new_context
    from glow_mlir.ir.locations import cloned
    from glow_mlir.ir.rewriting import functions
    from glow_mlir.ir.text import read_module, verify_module

    is_file = isinstance(model, str | Path)
    if not is_file:
        verify_module(model)
    module: ModuleOp = read_module(Path(model), new_context(), in_memory) if is_file else cloned(model)
    if not functions(module):
        file = str(model) if is_file else ""
        kinds = dict.fromkeys(op.name for op in module.body.block.ops)
        reason = "the module has no function of glow_high or glow_low"
        hint = f"it has {', '.join(kinds)}; mlir-opt and mlir-runner take other dialects" if kinds else "it is empty"
        raise ModelError(reason, file=file, hint=hint)
    return module
