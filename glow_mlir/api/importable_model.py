"""Models of front ends other than ONNX's, which know how they are imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.runtime.signature import Signature
    from glow_mlir.support.symbols import GivenDimension


class ImportableModel(Protocol):
    """
    A model with an import method of its own: a `TracedModel` of PyTorch, a `TfliteModel`, a `StablehloModel`.

    Beside these methods, it has an `identity`, a digest of its content; `is_importable` recognizes it by that.
    """

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions."""
        ...

    def signature(self, dimensions: Mapping[str, GivenDimension], /) -> Signature:
        """Its inputs and outputs; `dimensions` has sizes of free dimensions. Raises `OptionError`."""
        ...

    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
        /,
    ) -> ModuleOp:
        """The module of `glow_high`; inputs in `values` become constants. Raises `GlowError`."""
        ...
