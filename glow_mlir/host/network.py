"""Networks: a model behind a queue, and the threads that compute its requests."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from glow_mlir.api.session_entry import SessionEntry, check_named
from glow_mlir.errors import (
    CancelledError,
    ExecutionError,
    GlowError,
    InputError,
    NetworkHangsError,
    OutOfMemoryError,
    QueueFullError,
    TimeLimitError,
)
from glow_mlir.host.batches import Batches, wanted_of
from glow_mlir.host.replicas import Replica, Slot
from glow_mlir.host.request_queue import Batching, RequestQueue
from glow_mlir.host.requests import Answer, Outputs, Request
from glow_mlir.host.sequences import KeptState, Sequences, SequenceStep
from glow_mlir.host.statistics import Statistics
from glow_mlir.host.timetable import Timetable
from glow_mlir.options.hosting import HostingOptions
from glow_mlir.runtime.device_array import Tensor
from glow_mlir.runtime.queue_trace import is_traced, note
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.cancellation import Cancellation, cancelled_by
from glow_mlir.support.forks import reset_in_forks

ENDING = 5.0
"""Seconds that the threads of a removed network have to end."""

MAX_LOST = 2
"""
The factor for the number of hanging calls, relative to concurrent calls, at which a network stops accepting requests.
"""


def _timeout(seconds: object) -> float | None:
    """The timeout of a request in seconds, `None` for no limit; raises `InputError` for an invalid duration."""
    if seconds is None or seconds == math.inf:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or math.isnan(seconds):
        raise InputError(f"the timeout must be a number of seconds, got {seconds!r}", hint="None for no timeout")
    return float(seconds)


def _is_of_replica(error: BaseException) -> bool:
    """Whether a call failed because of its worker, not because of its inputs."""
    return isinstance(error, OutOfMemoryError) or not isinstance(error, GlowError)


class Network:
    """
    A model of a host, which accepts requests from any thread.

    Requests wait in a queue by priority, and are computed by replicas of the model, in batches if the network batches.
    Each gets exactly one answer or error.
    """

    def __init__(
        self,
        name: str,
        version: str,
        entry: SessionEntry,
        replicas: Sequence[tuple[Replica, int]],
        batches: Batches,
        options: HostingOptions,
        timetable: Timetable,
        kept: KeptState | None = None,
        stored_bytes: Callable[[], int] = int,
    ) -> None:
        """
        `entry` checks inputs; each replica computes a number of calls at once. `kept` stores the state of sequences.
        `stored_bytes` is the memory of the model before it is compiled.
        """
        self.name = name
        self.version = version
        self.options = options
        self.statistics = Statistics()
        self.replicas = [replica for replica, _ in replicas]
        self.used = time.perf_counter()
        """The time of the last request."""
        self._entry = entry
        self._batches = batches
        self._timetable = timetable
        self._kept = kept
        self._stored_bytes = stored_bytes
        self._is_direct = kept is None and not options.call_limit
        """Whether callers may compute themselves, because no call limit has to be watched."""
        self._queue = RequestQueue[Slot](name, options.queue, Batching(options.batch, options.delay))
        self._sequences = Sequences(name, options.sequences, options.queue, self._queue.put)
        self._calls = sum(calls for _, calls in replicas)
        """The maximum number of concurrent calls."""
        self._lost = 0
        """The number of hanging calls."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._slots: list[Slot] = []
        # Interleave the replicas, so that the first calls use different ones.
        for number in range(max(calls for _, calls in replicas)):
            for replica, calls in replicas:
                if number < calls:
                    self._add_slot(Slot(replica))
        reset_in_forks(self)

    def _add_slot(self, slot: Slot) -> None:
        self._slots.append(slot)
        self._queue.add_slot(slot)

    # ---- what it is ----

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of requests, in order."""
        hidden = () if self._kept is None else self._kept.inputs
        return tuple(argument for argument in self._entry.inputs if argument.name not in hidden)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of requests, in order."""
        hidden = () if self._kept is None else self._kept.outputs
        return tuple(argument for argument in self._entry.outputs if argument.name not in hidden)

    @property
    def max_batch(self) -> int:
        """The maximum number of samples per call; 0 if requests are not batched."""
        return self.options.batch if self.options.batch > 1 else 0

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return self._queue.waiting

    @property
    def is_ready(self) -> bool:
        """Whether it accepts requests, and has workers."""
        return not self._queue.is_closed and self._lost < MAX_LOST * self._calls

    @property
    def memory_bytes(self) -> int:
        """Bytes of code, constants and activations of all replicas; only of the model until one is compiled."""
        return sum(replica.runner.memory_bytes for replica in self.replicas) or self._stored_bytes()

    def data(self) -> dict[str, object]:
        """The status and statistics of the network, for JSON."""
        return {"name": self.name, "version": self.version, "waiting": self.waiting, **self.statistics.data()}

    # ---- requests ----

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Iterable[str] | None = None,
        priority: int = 0,
        timeout: float | None = None,
        sequence: SequenceStep | None = None,
    ) -> Outputs:
        """
        Compute the named outputs, or all; in the caller's thread if nothing is queued, otherwise in a worker.

        Raises the errors of `submit` and its answer.
        """
        if timeout is not None or sequence is not None or not self._is_direct:
            return self.submit(inputs, outputs=outputs, priority=priority, timeout=timeout, sequence=sequence).result()
        wanted = self._wanted(outputs)
        checked = self._checked(inputs, None)
        rows = self._batches.rows(checked)
        slot = self._queue.enter()
        if slot is None:
            return self._put(self._request(checked, wanted, priority, None), None).result()
        replica, begin, failure = slot.replica, time.perf_counter(), None
        try:
            found = replica.runner.run(checked)
        except Exception as error:
            found, failure = dict[str, np.ndarray](), error
            if _is_of_replica(error):
                replica.fared(well=False)
        finally:
            self._give_back(slot)
            self.used = end = time.perf_counter()
        if failure is not None:
            return self._again(failure, replica, checked, wanted, priority)
        self.statistics.called(rows, (0.0,), end - begin)
        if is_traced():
            self._note(begin, begin, end)
        return wanted_of(found, wanted)

    def _again(
        self,
        error: Exception,
        replica: Replica,
        checked: Mapping[str, Tensor],
        wanted: Sequence[str] | None,
        priority: int,
    ) -> Outputs:
        """
        Retry on another replica after a failure; raises the error if there is none, or if the request is at fault.
        """
        if not _is_of_replica(error) or not self._has_others(replica):
            self.statistics.count("failed")
            failure = self._failure(replica, error)
            raise failure from (None if failure is error else error)
        request = self._request(checked, wanted, priority, None)
        request.attempts = 1
        return self._put(request, None).result()

    def submit(
        self,
        inputs: Mapping[str, Any],
        *,
        outputs: Iterable[str] | None = None,
        priority: int = 0,
        timeout: float | None = None,
        sequence: SequenceStep | None = None,
    ) -> Answer:
        """
        Queue a request; return a future for the named outputs, or all.

        Inputs must not change until then. Requests with lower `priority` numbers come first. After `timeout` seconds,
        it ends with `TimeLimitError`. Steps of a `sequence` are computed in order, each from the state that the
        previous one left. Raises `InputError` for inputs that do not fit, and `QueueFullError`.
        """
        wanted = self._wanted(outputs)
        checked = self._checked(inputs, sequence)
        return self._put(self._request(checked, wanted, priority, timeout), sequence)

    async def infer(self, inputs: Mapping[str, Any], **keywords: Any) -> Outputs:
        """As `submit`, in an asyncio loop; cancelling the task cancels the request."""
        return await asyncio.wrap_future(self.submit(inputs, **keywords))

    def _wanted(self, outputs: Iterable[str] | None) -> Sequence[str] | None:
        """The outputs of a request as a list, because an iterator can be read only once."""
        if outputs is None:
            return None
        found = self._entry.listed_outputs(outputs)
        hidden = () if self._kept is None else self._kept.outputs
        if gone := [name for name in found if name in hidden]:
            raise InputError(f"output '{gone[0]}' cannot be requested: sequences keep it as state")
        return found

    def _checked(self, inputs: Mapping[str, Any], sequence: SequenceStep | None) -> Mapping[str, Tensor]:
        if self._kept is None and sequence is None:
            return self._entry.checked(inputs)
        if self._kept is None:
            reason = f"'{self.name}' has no state, which sequences need"
            raise InputError(reason, hint="leave out the sequence, or declare state={output: input}")
        check_named(inputs, "inputs")
        return self._entry.checked(self._kept.completed(inputs))

    def _request(
        self, checked: Mapping[str, Tensor], wanted: Sequence[str] | None, priority: int, timeout: float | None
    ) -> Request:
        if whole_number(priority) is None:
            raise InputError(f"the priority must be an integer, got {priority!r}", hint="negative ones come first")
        request = Request(self.name, checked, wanted, priority, _timeout(timeout), self._settled)
        request.rows = self._batches.rows(checked)
        request.key = self._batches.key(checked)
        return request

    def _put(self, request: Request, sequence: SequenceStep | None) -> Answer:
        """Queue a request."""
        answer = request.answer
        if not self._queue.is_closed and not self.is_ready:
            reason = f"'{self.name}' accepts no requests: {self._lost} of its calls hang"
            raise NetworkHangsError(reason, hint="remove it, and add it again")
        if request.deadline is not None and request.deadline <= request.arrived:
            request.expire()
            return answer
        try:
            if sequence is None:
                self._queue.put(request)
            else:
                self._sequences.add(request, sequence)
        except QueueFullError:
            self.statistics.count("refused")
            raise
        self.used = request.arrived
        if request.deadline is not None:
            self._timetable.at(request.deadline, request, Request.expire)
        if len(self._threads) < self._calls:
            self._start()
        return answer

    def _settled(self, request: Request, outcome: str) -> None:
        """A request has ended without an answer."""
        self.statistics.count(outcome)
        if self._queue.left(request):
            self._over(request, went_well=False)

    def _over(self, request: Request, *, went_well: bool) -> None:
        """A request is finished or abandoned: the next step of its sequence may run."""
        with self._lock:  # A hanging call may still end.
            sequence, request.sequence = request.sequence, None
        if sequence is not None:
            self._sequences.left(sequence, is_over=request.is_end or not went_well, went_well=went_well)

    # ---- calls ----

    def _start(self) -> None:
        """Start another thread, if there are fewer than the maximum number of calls."""
        with self._lock:
            if len(self._threads) < self._calls and not self._queue.is_closed:
                thread = threading.Thread(target=self._serve, name=f"glow-host-{self.name}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self) -> None:
        """The loop of a worker thread, until the network is removed or a call hangs."""
        while (taken := self._queue.take()) is not None:
            slot, requests = taken
            slot.requests, slot.thread = requests, threading.current_thread()
            if limit := self.options.call_limit:
                self._timetable.at(time.perf_counter() + limit, slot, partial(self._hangs, requests=requests))
            self._compute(slot.replica, requests)
            del taken, requests  # Do not keep inputs while idle.
            with self._lock:
                slot.requests = ()
                if slot.is_lost:  # The hanging call has ended.
                    self._lost -= not slot.replica.runner.is_replaced
                    return
            self._give_back(slot)

    def _give_back(self, slot: Slot) -> None:
        """Free a slot; if its replica has just failed and others are available, after a delay."""
        if slot.replica.rest and not all(replica.rest for replica in self.replicas):
            self._queue.drop_slot()
            self._timetable.at(slot.replica.rests_until, slot, self._queue.add_slot)
        else:
            self._queue.give_back(slot)

    def _hangs(self, slot: Slot, requests: Sequence[Request]) -> None:
        """A call exceeds its time limit: fail its requests, and replace its slot, unless too many calls hang."""
        with self._lock:
            if slot.requests is not requests or slot.is_lost:
                return
            slot.is_lost = True
            self._lost += not slot.replica.runner.is_replaced
            if slot.thread is not None:
                self._threads.remove(slot.thread)
            self._slots.remove(slot)
        slot.replica.fared(well=False)
        reason = f"a call of '{self.name}' took longer than {self.options.call_limit:g} seconds"
        for request in requests:
            request.fail(TimeLimitError(reason, hint="call_limit=…"))
            self._over(request, went_well=False)
        slot.replica.runner.interrupt()
        self._queue.drop_slot()
        if self.is_ready:
            self._add_slot(Slot(slot.replica))
            self._start()
            return
        for request in self._queue.all_waiting():
            request.fail(NetworkHangsError(f"'{self.name}' has no worker left: {self._lost} of its calls hang"))

    def _compute(self, replica: Replica, requests: Sequence[Request]) -> None:
        """Compute requests in one call; if a request may be at fault, compute each in a call of its own."""
        waiting: list[Request] = []
        for request in requests:
            if request.is_done:
                self._over(request, went_well=False)
            else:
                waiting.append(request)
        if not waiting:
            return
        requests = waiting
        try:
            self._call(replica, requests)
        except BaseException as error:
            if _is_of_replica(error):
                self._failed(replica, requests, error)
            elif len(requests) == 1:
                requests[0].fail(self._failure(replica, error))
                self._over(requests[0], went_well=False)
            else:
                for request in requests:
                    self._compute(replica, [request])

    def _call(self, replica: Replica, requests: Sequence[Request]) -> None:
        """Answer requests with one call; raises its errors."""
        begin = time.perf_counter()
        # Do not keep the inputs of requests that are done meanwhile.
        given = [request.inputs for request in requests]
        if self._kept is not None:
            pairs = zip(requests, given, strict=True)
            given = [self._kept.enter(request.sequence, inputs) for request, inputs in pairs]
        if len(requests) == 1:
            (request,) = requests
            request.cancellation = Cancellation()
            with cancelled_by(request.cancellation):
                parts = [replica.runner.run(given[0])]
        else:
            rows_of = [request.rows for request in requests]
            parts = self._batches.parts(rows_of, replica.runner.run(self._batches.joined(given)))
        if self._kept is not None:
            parts = [self._kept.leave(item.sequence, part) for item, part in zip(requests, parts, strict=True)]
        parts = [wanted_of(part, request.wanted) for request, part in zip(requests, parts, strict=True)]
        end = time.perf_counter()
        replica.fared(well=True)
        answered = [(request, part) for request, part in zip(requests, parts, strict=True) if request.claim()]
        rows = sum(request.rows for request in requests)
        self.statistics.called(rows, [begin - request.arrived for request, _ in answered], end - begin)
        well = {request for request, _ in answered}
        for request in requests:  # Before it is answered: the caller may then end the sequence, or read counts.
            self._over(request, went_well=request in well)
        for request, part in answered:
            if is_traced():
                self._note(request.arrived, begin, end)
            request.succeed(part)

    def _failed(self, replica: Replica, requests: Sequence[Request], error: BaseException) -> None:
        """A replica has failed: queue the requests once more, for another one."""
        replica.fared(well=False)
        for request in requests:
            request.attempts += 1
            if request.attempts == 1 and self._has_others(replica):
                self._queue.put(request, again=True)
            else:
                request.fail(self._failure(replica, error))
                self._over(request, went_well=False)

    def _has_others(self, replica: Replica) -> bool:
        """Whether another replica can retry a failed call."""
        return len(self.replicas) > 1 or replica.runner.is_replaced

    def _failure(self, replica: Replica, error: BaseException) -> GlowError:
        """The failure of a replica as an error for callers."""
        if isinstance(error, GlowError):
            return error
        reason = f"'{self.name}' failed on {replica.name}: {type(error).__name__}: {error}"
        return ExecutionError(" ".join(reason.split()))

    def _note(self, arrived: float, begin: float, end: float) -> None:
        """Record in traces when a request waited and was computed."""
        arrived_ns, begin_ns, end_ns = (int(moment * 1e9) for moment in (arrived, begin, end))
        note(f"{self.name}: queue", "waits", arrived_ns, begin_ns)
        note(self.name, "computes", begin_ns, end_ns)

    # ---- its end ----

    def close(self, wait: float = 0.0) -> None:
        """Accept no more requests, compute waiting ones for a number of seconds, and cancel the rest."""
        self._queue.close()
        if not self._queue.wait_until_idle(wait):
            waiting = self._queue.all_waiting()
            with self._lock:
                slots = [slot for slot in self._slots if slot.requests]
            for request in (*waiting, *(request for slot in slots for request in slot.requests)):
                request.fail(CancelledError(f"'{self.name}' was removed"), "cancelled")
        with self._lock:
            threads = list(self._threads)
        end = time.perf_counter() + ENDING
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.perf_counter()))
        for replica in self.replicas:
            replica.runner.close()

    def reset_after_fork(self) -> None:
        """Start without threads in a child of `os.fork`, with all slots free."""
        self._lock = threading.Lock()
        self._threads.clear()
        self._lost = 0
        self._queue.reset_after_fork()
        self._slots = [Slot(slot.replica) for slot in self._slots]
        for slot in self._slots:
            self._queue.add_slot(slot)
