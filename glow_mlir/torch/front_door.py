"""Entry points for PyTorch modules; they raise an error if PyTorch is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import OptionError
from glow_mlir.support.optional_packages import to_install

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession
    from glow_mlir.frontends.torch.model import TracedModel


def _require_pytorch() -> None:
    """Raise `OptionError` where PyTorch is not installed."""
    if find_spec("torch") is None:
        raise OptionError("PyTorch is not installed", hint=to_install("torch"))


def from_torch(
    module: Any,
    example: Sequence[Any] | Any = (),
    *,
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **options: Any,
) -> InferenceSession:
    """
    The session of a module of PyTorch, as it is in its present mode, of an `ExportedProgram`, or of its file (`.pt2`).

    ```python
    session = glow_mlir.from_torch(model.eval(), (images,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    (logits,) = session.run(None, {"x": array})
    ```

    `example` are the positional arguments of a call, `keywords` those by name; `dynamic_shapes` says which axes are
    free, as `torch.export.export` takes it. Inputs go by the names of the arguments, outputs by keys, or as `output`.
    `options` are those of `InferenceSession`. Raises `ModelError` for what PyTorch cannot export, `OptionError` where
    PyTorch is missing, and `GlowError` for what is not supported.
    """
    _require_pytorch()
    from glow_mlir.torch.exported_model import session_of

    return session_of(module, example, keywords=keywords, dynamic_shapes=dynamic_shapes, **options)


def exported(
    module: Any,
    example: Sequence[Any] | Any = (),
    *,
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> TracedModel:
    """
    Convert a PyTorch module to a model for `InferenceSession`, `TrainingSession` and bundles; see `from_torch`.

    Parameters and buffers become constants that share PyTorch's memory, which must not change while the model is used;
    buffers that the module changes become state.
    """
    _require_pytorch()
    from glow_mlir.torch.exported_model import model_of

    return model_of(module, example, keywords=keywords, dynamic_shapes=dynamic_shapes)
