"""
Pipelines: stages of a model, each computed by a worker of its own, for several requests at once.

Each worker computes one call at a time: while one worker computes the second stage of a request, another computes the
first stage of the next.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

import numpy as np

from glow_mlir.api.session_entry import SessionEntry
from glow_mlir.host.replicas import Runner
from glow_mlir.runtime.device_array import Tensor, on_host
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.state import State
from glow_mlir.support.cancellation import held
from glow_mlir.support.forks import reset_in_forks


class StageFolder:
    """A folder with the models of stages, removed with the last worker that may read it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="glow-stages-"))
        weakref.finalize(self, _removed, self.path, os.getpid())


def _removed(path: Path, owner: int) -> None:
    """Remove a folder, in the process that created it."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


class Stage:
    """A pipeline stage: its inputs and outputs by name, and the worker that computes it, one call at a time."""

    def __init__(self, inputs: Sequence[Argument], outputs: Sequence[Argument], runner: Runner) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.runner = runner
        self._names = tuple(argument.name for argument in inputs)
        self.begun = 0.0
        """The start time of the running call; 0 if there is none."""
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """No call is running, in a child of `os.fork`."""
        self._turn = Lock()
        self.begun = 0.0

    def run(self, known: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """The outputs of the stage for known values, after earlier calls."""
        with held(self._turn):
            self.begun = time.perf_counter()
            try:
                return self.runner.run({name: known[name] for name in self._names})
            finally:
                self.begun = 0.0


class PipelineRunner:
    """Run calls stage by stage; concurrent calls are in different stages."""

    def __init__(self, stages: Sequence[Stage], outputs: Mapping[str, str], folder: StageFolder) -> None:
        """`outputs` maps each output to its name as an output of a stage, or as an input."""
        self.stages = tuple(stages)
        self._outputs = outputs
        self._folder = folder
        self.is_replaced = all(stage.runner.is_replaced for stage in stages)

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
        """The outputs for checked inputs; raises the error of a stage."""
        known: dict[str, Tensor] = dict(inputs)
        for stage in self.stages:
            known.update(stage.run(known))
        return {name: on_host(known[given]) for name, given in self._outputs.items()}

    @property
    def memory_bytes(self) -> int:
        """Bytes of code, constants and activations of all stages."""
        return sum(stage.runner.memory_bytes for stage in self.stages)

    def interrupt(self) -> None:
        """Cancel the call that has been in its stage longest."""
        busy = [stage for stage in self.stages if stage.begun]
        if busy:
            min(busy, key=lambda stage: stage.begun).runner.interrupt()

    def close(self) -> None:
        """Stop all workers."""
        for stage in self.stages:
            stage.runner.close()


class _PipelinePoint(EntryPoint):
    """
    A pipeline as an entry: its inputs are those of stages not produced by other stages, its outputs those of the whole.
    """

    def __init__(self, stages: Sequence[Stage], outputs: Mapping[str, str], runner: PipelineRunner) -> None:
        super().__init__("main", [], State([]))
        given = {argument.name: argument for stage in stages for argument in stage.outputs}
        taken = {argument.name: argument for stage in stages for argument in stage.inputs}
        self._inputs = tuple(argument for name, argument in taken.items() if name not in given)
        known = {**taken, **given}
        self._outputs = tuple(replace(known[value], name=name) for name, value in outputs.items())
        self._runner = runner

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self._inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self._outputs

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._runner.run(inputs)


def pipeline(
    stages: Sequence[Stage], outputs: Mapping[str, str], folder: StageFolder
) -> tuple[PipelineRunner, SessionEntry]:
    """The runner of a pipeline, and its entry with checked inputs and outputs."""
    runner = PipelineRunner(stages, outputs, folder)
    return runner, SessionEntry(_PipelinePoint(stages, outputs, runner))
