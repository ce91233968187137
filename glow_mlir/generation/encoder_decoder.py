"""An encoder with its decoder: an input is encoded once, and sequences of the decoder attend to what that gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import OptionError
from glow_mlir.frontends.decoders.models import MEMORY_PAGE, open_model
from glow_mlir.generation.engine import Engine, EngineLimits
from glow_mlir.generation.memory import Memory
from glow_mlir.generation.pages import PagePool
from glow_mlir.generation.sampler import Sampler
from glow_mlir.generation.session_calls import SessionCalls
from glow_mlir.generation.token_sequence import TokenSequence
from glow_mlir.options.generation import ACTIVATIONS, CONTEXT

PAGE = 16
"""The tokens of a page: few, since a fork copies the last one."""

ENCODER_PAGE = 64
"""The rows of a page of the encoder's own keys and values."""

MEMORIES = 2
"""The results of the encoder that are kept: one that is used, and one that is made."""


class EncoderDecoder:
    """
    Encoder and decoder of a checkpoint, compiled.

    Up to `sequences` sequences of up to `context` tokens are continued in a call, which has up to `rows` tokens.
    `cache` is the element type of keys and values. `options` are those of the sessions.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context: int | None,
        sequences: int,
        rows: int,
        cache: str,
        activations: str | None,
        **options: Any,
    ) -> None:
        if activations is not None and activations not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise OptionError(f"activations cannot be '{activations}'", hint=f"they are one of {known}")
        bits = None if activations is None else ACTIVATIONS[activations]
        self.encoder = open_model(path, part="encoder")
        self.decoder = open_model(path, part="decoder").bounded(context, CONTEXT)
        self._encoding = self._encoder_session(bits, options)
        context, self.width = self.decoder.config.context, self.decoder.network.width
        pages = sequences * (-(-context // PAGE) + 1)
        program: Any = self.decoder.program(
            pages=pages,
            rows=rows,
            outputs=sequences,
            sequences=sequences,
            page=PAGE,
            cache=cache,
            left_bits=bits,
            memories=MEMORIES,
        )
        session = InferenceSession(program, dimensions=program.dimensions, **options)
        limits = EngineLimits(rows, sequences, sequences, context, memory=self.width)
        memories = PagePool(MEMORIES * -(-self.decoder.network.memory // MEMORY_PAGE), MEMORY_PAGE)
        chooser = Sampler(self.decoder.config.vocabulary)
        self.engine = Engine(SessionCalls(session), chooser, PagePool(pages, PAGE), limits, memories)

    def _encoder_session(self, bits: int | None, options: dict[str, Any]) -> InferenceSession:
        rows = self.encoder.config.context
        program: Any = self.encoder.program(
            pages=-(-rows // ENCODER_PAGE),
            rows=rows,
            outputs=rows,
            page=ENCODER_PAGE,
            cache="float32",
            left_bits=bits,
            result="hidden",
        )
        return InferenceSession(program, dimensions=program.dimensions, **options)

    def encode(self, features: np.ndarray) -> Memory:
        """What the encoder makes of features [frames, bins] of f32."""
        count = self.encoder.config.context
        numbers = np.arange(count)
        given = {
            "features": features,
            "positions": numbers,
            "sequences": np.zeros(count, np.int64),
            "table": np.arange(-(-count // ENCODER_PAGE))[None],
            "lengths": np.array([count]),
            "last": numbers,
        }
        return Memory(self.engine, self._encoding.run(None, given)[0])

    def sequence(self, memory: Memory) -> TokenSequence:
        """A sequence without tokens, which attends to a memory."""
        return TokenSequence(self.engine, self.decoder.config.vocabulary, memory=memory)
