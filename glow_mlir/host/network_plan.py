"""From a model and its options to a network: sessions, replicas, the layout of samples, and state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

from glow_mlir.api.model_identity import stored_bytes
from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.stage_models import PackedModel, split_model
from glow_mlir.errors import OptionError
from glow_mlir.host.batches import Batches, NoBatches, batch_dimension
from glow_mlir.host.network import Network
from glow_mlir.host.pipelines import Stage, StageFolder, pipeline
from glow_mlir.host.processes import ProcessRunner, WorkerTask
from glow_mlir.host.replicas import Replica, Runner, SessionRunner
from glow_mlir.host.sequences import KeptState, SessionState, StateOutputs
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.hosting import PROCESSES, RAY, THREADS, HostingOptions
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.signature import check_tensors
from glow_mlir.support.dataclass import dataclass

DEPTH = 3
"""The default number of concurrent calls on devices: two stages and a transfer."""


@dataclass(frozen=True)
class NetworkPlan:
    """The plan of a network: a model, the devices of each replica, and options of hosting and sessions."""

    name: str
    version: str
    model: Any
    assignments: Sequence[str]
    options: HostingOptions
    keywords: Mapping[str, Any]

    def network(self, timetable: Timetable) -> Network:
        """The network, compiled and loaded; on errors, which are `GlowError`, everything is released."""
        if self.options.stages > 1:
            return self._pipelines(timetable)
        batches, sizes = self._batches()
        session_keywords = {**self.keywords, **sizes}
        sessions = self._sessions(session_keywords)
        kept = self._kept_state(sessions)
        with ExitStack() as stack:
            replicas = [
                self._replica(number, session, session_keywords, stack) for number, session in enumerate(sessions)
            ]
            stack.pop_all()
        first = sessions[0].first
        stored = cache(partial(stored_bytes, sessions[0].model))
        return Network(self.name, self.version, first, replicas, batches, self.options, timetable, kept, stored)

    def _pipelines(self, timetable: Timetable) -> Network:
        """The network with pipelines as replicas; on errors, which are `GlowError`, everything is released."""
        options = self.options
        if any(self.assignments):
            raise OptionError("stages run on workers, not on devices", hint="leave out devices, or stages=1")
        folder = StageFolder()
        models = split_model(self.model, self.keywords, options.stages, folder.path)
        calls = options.calls or options.stages + 1
        with ExitStack() as stack:
            replicas: list[tuple[Replica, int]] = []
            entry = None
            for number in range(len(self.assignments)):
                stages = [self._stage(path, models.keywords, stack) for path in models.paths]
                runner, entry = pipeline(stages, models.outputs, folder)
                replicas.append((Replica(f"replica {number}", runner), calls))
            assert entry is not None
            kept = StateOutputs(options.state, entry) if options.state else None
            stack.pop_all()
        stored = cache(partial(stored_bytes, self.model))
        return Network(self.name, self.version, entry, replicas, NoBatches(), options, timetable, kept, stored)

    def _stage(self, path: Path, keywords: Mapping[str, Any], stack: ExitStack) -> Stage:
        """A stage with its worker; `stack` closes it if others fail to start."""
        session = ModelSession.of(path, **keywords)
        model = PackedModel.of(path) if self.options.workers == RAY else path
        runner = self._runner(session, WorkerTask(model, keywords))
        stack.callback(runner.close)
        return Stage(session.first.inputs, session.first.outputs, runner)

    def _batches(self) -> tuple[Batches, Mapping[str, Any]]:
        """The layout of samples, and the session keywords for their number."""
        if self.options.batch == 1:
            return NoBatches(), {}
        first = self._session(self.keywords, self.assignments[0]).first
        check_tensors(first, f"batch={self.options.batch}", "batch=1", strings=True)
        dimension = batch_dimension(self.name, first.inputs)
        sizes = {**self.keywords.get("dimensions", {}), dimension: (1, self.options.batch)}
        return Batches(dimension, first.inputs, first.outputs, self.options.batch), {"dimensions": sizes}

    def _sessions(self, session_keywords: Mapping[str, Any]) -> list[ModelSession]:
        """The session of each replica; replicas on the same devices share one, because it supports concurrent calls."""
        found: dict[str, ModelSession] = {}
        for devices in self.assignments:
            if devices not in found:
                found[devices] = self._session(session_keywords, devices)
        return [found[devices] for devices in self.assignments]

    def _session(self, session_keywords: Mapping[str, Any], devices: str) -> ModelSession:
        return ModelSession.of(self.model, **self._keywords(session_keywords, devices))

    def _keywords(self, session_keywords: Mapping[str, Any], devices: str) -> dict[str, Any]:
        return {**session_keywords, "devices": devices} if devices else dict(session_keywords)

    def _replica(
        self, number: int, session: ModelSession, session_keywords: Mapping[str, Any], stack: ExitStack
    ) -> tuple[Replica, int]:
        """A replica, and its number of concurrent calls; `stack` closes it if others fail to start."""
        devices = self.assignments[number]
        runner = self._runner(session, WorkerTask(self.model, self._keywords(session_keywords, devices)))
        stack.callback(runner.close)
        return Replica(f"replica {number}{f' ({devices})' if devices else ''}", runner), self._calls(session)

    def _runner(self, session: ModelSession, task: WorkerTask) -> Runner:
        if self.options.workers == THREADS:
            return SessionRunner(session)
        check_tensors(session.first, f"workers='{self.options.workers}'", "workers='threads'", strings=False)
        if self.options.workers == PROCESSES:
            return ProcessRunner(task)
        from glow_mlir.host.ray_actors import RayRunner

        return RayRunner(task)

    def _calls(self, session: ModelSession) -> int:
        """The number of concurrent calls of a replica."""
        if self.options.workers != THREADS or session.loaded.state.names:
            return 1
        threads = int(session.options.fields.get("threads") or 1)
        return self.options.calls or (DEPTH if session.loaded.is_queued else max(1, usable_cores() // threads))

    def _kept_state(self, sessions: Sequence[ModelSession]) -> KeptState | None:
        """The storage of the state of sequences; `None` if there is none."""
        options = self.options
        if not sessions[0].loaded.state.names:
            return StateOutputs(options.state, sessions[0].first) if options.state else None
        if options.state or len(sessions) > 1 or options.workers != THREADS or options.calls > 1:
            reason = f"the state of '{self.name}' is kept in its session, which swaps it between sequences"
            raise OptionError(reason, hint="use one replica with one call at a time, workers='threads' and no state=…")
        return SessionState(sessions[0])
