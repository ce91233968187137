"""Faults of a model that is imported in spite of them: the fault, and the assumption made instead."""

from __future__ import annotations

from glow_mlir.errors import ModelError

AS_IN_ONNXRUNTIME = "onnxruntime's interpretation is used"
"""The assumption about an operator that is in no opset, or in none that the model imports."""


class Doubt(ModelError):
    """
    A fault of a model that other engines tolerate.

    `reason` states the fault; `assumed`, a sentence, states the assumption. `times` is appended to both.
    """

    def __init__(self, reason: str, assumed: str, *, node: str = "", hint: str = "", times: str = "") -> None:
        super().__init__(reason, node=node, hint=hint)
        self.assumed = assumed
        self.times = times

    def warning(self) -> ModelError:
        """The warning if the import goes on: the fault, and the assumption made."""
        reason = f"{self.reason}; {self.assumed}{self.times}"
        return ModelError(reason, file=self.file, node=self.node, hint=self.hint)

    def refusal(self) -> ModelError:
        """The error if the import is strict: the fault, and the assumption that would be made otherwise."""
        hint = "; ".join(filter(None, (self.hint, f"with strict=False {self.assumed}")))
        return ModelError(f"{self.reason}{self.times}", file=self.file, node=self.node, hint=hint)
