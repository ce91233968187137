"""The other end of a worker: starts it, asks, and says why where it does not answer."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np

from contest.engines import OURS
from contest.environments import last_words
from contest.job import Job

BENCHMARKS = Path(__file__).parents[1]
ROOT = BENCHMARKS.parent


class WorkerFailure(Exception):
    """Why an engine does not run a model, in one line."""


class Worker:
    """
    A process with one model on one engine.

    `facts` are what loading took: `prepare_seconds`, `load_seconds`, `load_bytes`. Raises `WorkerFailure` where the
    model does not load within `timeout` seconds; every request may raise it too. `root` has our source.
    """

    def __init__(self, job: Job, python: Path, log: Path, timeout: float, root: Path = ROOT) -> None:
        self._timeout = timeout
        self._log = log
        self._pending = b""
        path = os.pathsep.join([str(BENCHMARKS), *([str(root)] if job.engine == OURS else [])])
        threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")}
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [str(python), "-P", "-m", "contest.worker", job.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, **threads, "PYTHONPATH": path},
                start_new_session=True,
            )
        try:
            self.facts = self._answer()
        except WorkerFailure:
            self.stop()
            raise

    def seconds(self, calls: int) -> list[float]:
        """Seconds of each of that many calls."""
        return self._ask(f"time {calls}")["seconds"]

    def outputs(self) -> list[np.ndarray]:
        """The outputs for the inputs of the job."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "outputs.npz"
            self._ask(f"outputs {path}")
            with np.load(path) as stored:
                return [stored[str(index)] for index in range(len(stored.files))]

    def run_bytes(self) -> int:
        """The largest resident size since the model was loaded."""
        return self._ask("memory")["run_bytes"]

    def stop(self) -> None:
        """End the process, and those that it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _ask(self, request: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{request}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailure(self._end()) from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        answer = cast("dict[str, Any]", json.loads(self._line()))
        if "error" in answer:
            raise WorkerFailure(one_line(answer["error"]))
        return answer

    def _line(self) -> bytes:
        """The next line of the worker."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(self._timeout):
                    raise WorkerFailure(f"no answer within {self._timeout:.0f} s")
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    raise WorkerFailure(self._end())
                self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _end(self) -> str:
        """How the process ended."""
        code = self._process.wait()
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"the process {how}: {one_line(last_words(self._log.read_text(errors='replace')))}"


def one_line(text: str, limit: int = 200) -> str:
    """The first line of a message that is not empty, cut to a limit."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no message"]
    # Engines whose first line only announces the second.
    line = lines[0] if len(lines) == 1 or not lines[0].endswith(":") else f"{lines[0]} {lines[1]}"
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
