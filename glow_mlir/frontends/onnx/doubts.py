"""Faults of a model that is imported in spite of them: what is wrong, and what holds instead."""

from __future__ import annotations

from glow_mlir.errors import ModelError

AS_IN_ONNXRUNTIME = "onnxruntime's interpretation is used"
"""What is assumed of an operator that is in no opset, or in none that the model imports."""


class Doubt(ModelError):
    """
    A fault of a model that other engines forgive.

    `reason` says what is wrong, and `assumed`, a sentence, what holds instead; `times` stands behind both.
    """

    def __init__(self, reason: str, assumed: str, *, node: str = "", hint: str = "", times: str = "") -> None:
        super().__init__(reason, node=node, hint=hint)
        self.assumed = assumed
        self.times = times

    def warning(self) -> ModelError:
        """For those who go on: what is wrong, and what was assumed."""
        reason = f"{self.reason}; {self.assumed}{self.times}"
        return ModelError(reason, file=self.file, node=self.node, hint=self.hint)

    def refusal(self) -> ModelError:
        """For the strict: what is wrong, and what would be assumed otherwise."""
        hint = "; ".join(filter(None, (self.hint, f"with strict=False {self.assumed}")))
        return ModelError(f"{self.reason}{self.times}", file=self.file, node=self.node, hint=hint)
