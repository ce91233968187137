"""Calls of a session as the engine makes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glow_mlir.api.onnxruntime.inference_session import InferenceSession


class SessionCalls:
    """A `Decoder` for the engine: a session with a program of a decoder."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def logits(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Logits [outputs, vocabulary]."""
        return self._session.run(None, inputs)[0]
