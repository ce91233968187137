"""Logits are equal to the bit in every schedule: alone, in batches, in chunks, behind shared pages, by any threads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_files import llama_metadata, llama_tensors, write_gguf

from glow_mlir import InferenceSession
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.generation.engine import Engine, EngineLimits
from glow_mlir.generation.pages import PagePool
from glow_mlir.generation.request import Request
from glow_mlir.generation.sampler import Choice, RowRequest
from glow_mlir.generation.sampling import Sampling

VOCABULARY, PAGE, PAGES, ROWS, SEQUENCES, CONTEXT = 96, 8, 64, 40, 4, 96


class SessionDecoder:
    """The decoder of a session."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def logits(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Logits of the wanted rows."""
        found: Any = self._session.run(None, dict(inputs))[0]
        return found


class Known:
    """Chooses tokens, and remembers the logits behind each text: those of another schedule must be equal."""

    def __init__(self) -> None:
        self.logits: dict[bytes, bytes] = {}
        self.met = 0
        """The number of logits that were known."""

    def choose(self, logits: np.ndarray, requests: list[RowRequest]) -> list[Choice]:
        """The most likely tokens."""
        for row, request in zip(logits, requests, strict=True):
            key, found = request.history.tobytes(), row.tobytes()
            self.met += key in self.logits
            assert self.logits.setdefault(key, found) == found, f"{len(request.history)} tokens"
        return [Choice(int(row.argmax())) for row in logits]


def sessions(path: Path, threads: int, **forms: Any) -> SessionDecoder:
    program: Any = open_model(path).program(
        pages=PAGES, page=PAGE, rows=ROWS, outputs=3 * SEQUENCES, sequences=SEQUENCES, **forms
    )
    return SessionDecoder(InferenceSession(program, dimensions=program.dimensions, threads=threads, cache=False))


@pytest.mark.parametrize(
    ("kind", "left_bits", "cache", "schedules"),
    [
        ("Q4_0", 15, "float16", 8),
        ("Q4_0", 15, "int8", 8),
        pytest.param("Q4_0", 15, "float16", 200, marks=pytest.mark.long),
        pytest.param("Q4_K", 8, "float32", 60, marks=pytest.mark.long),
        pytest.param("F32", 0, "bfloat16", 60, marks=pytest.mark.long),
    ],
)
def test_logits_do_not_depend_on_the_schedule(
    kind: str, left_bits: int, cache: str, schedules: int, tmp_path: Path
) -> None:
    sizes = {"embedding_length": 256, "feed_forward_length": 256, "context_length": CONTEXT}
    path = write_gguf(tmp_path / "model.gguf", llama_metadata(**sizes), llama_tensors(kind))
    rng, known = np.random.default_rng(0), Known()
    decoders = [sessions(path, threads, left_bits=left_bits, cache=cache) for threads in (1, 2)]
    texts = [rng.integers(0, VOCABULARY, 60) for _ in range(3)]
    for number in range(schedules):
        rows, sequences = int(rng.choice([12, 13, 20, ROWS])), int(rng.integers(1, SEQUENCES + 1))
        draft = number % 3
        limits = EngineLimits(rows, sequences, min(rows, sequences * (1 + draft)), CONTEXT)
        engine = Engine(decoders[number % 2], known, PagePool(PAGES, PAGE), limits)
        requests: list[Request] = []
        for _ in range(int(rng.integers(1, 7))):
            text = texts[rng.integers(3)][: int(rng.choice([1, 7, 8, 31, 60]))]
            requests.append(Request(text.tolist(), Sampling(temperature=0), 9, lambda choice: None, draft=draft))
            engine.submit(requests[-1])
        for request in requests:
            for _ in engine.drive(request):
                continue
    assert known.met > 10 * schedules
