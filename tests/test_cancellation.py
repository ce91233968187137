"""Calls end before they are done: by `terminate`, a limit of time, or Ctrl-C; loops look at the beginning of a trip."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from copy import copy, deepcopy
from typing import Any

import numpy as np
import onnx
import pytest

from glow_mlir import InferenceSession, RunOptions, SessionOptions
from glow_mlir.errors import CancelledError, ExecutionError, OptionError, TimeLimitError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module
from glow_mlir.support.cancellation import Cancellation
from glow_mlir.support.watchdog import Interruptible, Watchdog

FOREVER = 1 << 60
"""More trips than there is time for."""

COUNTED = """
<ir_version: 10, opset_import: ["" : 17]>
counted (int64 n, float[4] x) => (float[4] y) {
  y = Loop(n, , x) <body = trip (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity(c)
    w = Sin(v)
  }>
}
"""
NESTED = """
<ir_version: 10, opset_import: ["" : 17]>
nested (int64 n, float[4] x) => (float[4] y) {
  y = Loop(n, , x) <body = trip (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity(c)
    w = Loop(n, , v) <body = inner (int64 j, bool e, float[4] r) => (bool f, float[4] s) {
      f = Identity(e)
      s = Sin(r)
    }>
  }>
}
"""
UNTIL = """
<ir_version: 10, opset_import: ["" : 17]>
until (int64 n, float[4] x) => (float[4] y) {
  first, y = Loop(, yes, yes, x) <body = trip (int64 i, bool c, bool last, float[4] v) => (bool d, bool e, float[4] w) {
    d = Less(i, n)
    e = Identity(d)
    w = Sin(v)
  }>
}
"""

STATE = """
glow_high.placeholder @n : tensor<i64> {input}
glow_high.placeholder @count : tensor<1xf32> {state, value = dense<5.0> : tensor<1xf32>}
glow_high.placeholder @y : tensor<1xf32> {output}
glow_high.func @main(@n, @count, @y) {
  %n = glow_high.get @n : tensor<i64>
  %count = glow_high.get @count {mutable} : tensor<1xf32>
  %sum = glow_high.loop %i = %n (%value = %count) {
    %next = glow_high.add %value, %value : tensor<1xf32>
    glow_high.yield %next
  } : tensor<1xf32>
  glow_high.save %sum, @count
  glow_high.save %sum, @y
}
"""


def model(text: str) -> bytes:
    made = onnx.parser.parse_model(text)
    if "yes" in text:
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "yes"))
    return made.SerializeToString()


def feed(trips: int) -> dict[str, Any]:
    return {"n": np.int64(trips), "x": np.ones(4, np.float32)}


def session_of(text: str, **options: Any) -> InferenceSession:
    return InferenceSession(model(text), cache=False, **options)


@pytest.fixture(scope="module")
def counted() -> InferenceSession:
    return session_of(COUNTED)


def limited(seconds: float) -> RunOptions:
    options = RunOptions()
    options.time_limit = seconds
    return options


def expected(trips: int) -> np.ndarray:
    value = np.ones(4, np.float32)
    for _ in range(trips):
        value = np.sin(value)
    return value


@pytest.mark.parametrize("text", [COUNTED, NESTED, UNTIL])
@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_loops_end_when_time_is_up(text: str, backend: str) -> None:
    session = session_of(text, backend=backend)
    with pytest.raises(TimeLimitError, match=r"longer than its limit of 0\.05 seconds"):
        session.run(None, feed(FOREVER), limited(0.05))
    trips = {COUNTED: 3, NESTED: 9, UNTIL: 4}[text]
    np.testing.assert_allclose(session.run(None, feed(3), limited(60))[0], expected(trips), rtol=1e-5)


def test_limit_of_a_session_holds_for_each_call_that_has_none() -> None:
    session = session_of(COUNTED, time_limit=0.05)
    with pytest.raises(TimeLimitError, match=r"0\.05 seconds"):
        session.run(None, feed(FOREVER))
    with pytest.raises(TimeLimitError, match=r"0\.01 seconds"):
        session.run(None, feed(FOREVER), limited(0.01))
    assert session.run(None, feed(3))[0].shape == (4,)


def test_limit_holds_without_the_facade() -> None:
    session = session_of(COUNTED, time_limit=0.05).compiled
    with pytest.raises(TimeLimitError, match=r"0\.05 seconds"):
        session.run(feed(FOREVER))
    assert session.run(feed(3))["y"].shape == (4,)


def test_a_limit_is_a_timeout() -> None:
    assert issubclass(TimeLimitError, TimeoutError)
    assert issubclass(CancelledError, ExecutionError)


@pytest.mark.parametrize("value", [-1, "soon", float("inf"), float("nan"), True])
def test_limits_are_checked(value: Any) -> None:
    with pytest.raises(OptionError, match="time_limit"):
        session_of(COUNTED, time_limit=value)
    with pytest.raises(OptionError, match="time_limit"):
        RunOptions().time_limit = value


def in_calls(session: InferenceSession, options: list[RunOptions], then: Callable[[], None]) -> list[str]:
    """What calls without end, one in a thread for each of the options, say after `then`."""
    told: list[str] = [""] * len(options)

    def call(number: int) -> None:
        try:
            session.run(None, feed(FOREVER), options[number])
        except CancelledError as error:
            told[number] = str(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(options))]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    then()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    return told


def test_terminate_ends_all_calls_with_the_options(counted: InferenceSession) -> None:
    options = RunOptions()
    told = in_calls(counted, [options, options], lambda: setattr(options, "terminate", True))
    assert told == ["the call was terminated"] * 2
    with pytest.raises(CancelledError, match="terminate is set"):
        counted.run(None, feed(3), options)
    options.terminate = False
    np.testing.assert_allclose(counted.run(None, feed(3), options)[0], expected(3), rtol=1e-5)


def test_terminate_leaves_other_calls(counted: InferenceSession) -> None:
    first, second = RunOptions(), limited(0.3)
    told = in_calls(counted, [first, second], lambda: setattr(first, "terminate", True))
    assert told[0] == "the call was terminated"
    assert "limit of 0.3 seconds" in told[1]


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_copies_of_options_terminate_calls_of_their_own(
    counted: InferenceSession, copied: Callable[[RunOptions], RunOptions]
) -> None:
    first, copies = limited(0.3), list[RunOptions]()

    def terminate_copy() -> None:
        copies.append(copied(first))
        copies[0].terminate = True

    told = in_calls(counted, [first], terminate_copy)
    assert "limit of 0.3 seconds" in told[0]
    assert copies[0].time_limit == 0.3
    with pytest.raises(CancelledError, match="terminate is set"):
        counted.run(None, feed(3), copies[0])


def test_bound_calls_end(counted: InferenceSession) -> None:
    binding = counted.io_binding()
    binding.bind_cpu_input("n", np.array(FOREVER))
    binding.bind_cpu_input("x", np.ones(4, np.float32))
    result = np.zeros(4, np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, [4], result.ctypes.data)
    with pytest.raises(TimeLimitError):
        counted.run_with_iobinding(binding, limited(0.05))
    binding.bind_cpu_input("n", np.array(3))
    counted.run_with_iobinding(binding)
    np.testing.assert_allclose(result, expected(3), rtol=1e-5)


def test_sessions_with_state_go_on_behind_a_call_that_ended() -> None:
    session = InferenceSession(parse_module(STATE, new_context()))
    before = session.get_state()
    with pytest.raises(TimeLimitError):
        session.run(None, {"n": np.int64(FOREVER)}, limited(0.05))
    assert session.get_state()["count"] > before["count"]
    session.set_state(before)
    session.run(None, {"n": np.int64(2)})
    assert session.get_state()["count"] == [20.0]


def while_another_call_runs(session: InferenceSession, given: dict[str, Any]) -> float:
    """How many seconds a call took that had 0.05, and waited for another one."""
    first = RunOptions()

    def run_first() -> None:
        with suppress(CancelledError):
            session.run(None, {**given, "n": np.int64(FOREVER)}, first)

    thread, backstop = threading.Thread(target=run_first), threading.Timer(5, setattr, (first, "terminate", True))
    thread.start()
    backstop.start()
    time.sleep(0.1)
    begin = time.monotonic()
    with pytest.raises(TimeLimitError):
        session.run(None, {**given, "n": np.int64(FOREVER)}, limited(0.05))
    seconds = time.monotonic() - begin
    first.terminate = True
    thread.join(20)
    backstop.cancel()
    return seconds


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_a_call_that_waits_for_the_state_ends(backend: str) -> None:
    session = InferenceSession(parse_module(STATE, new_context()), backend=backend)
    assert while_another_call_runs(session, {}) < 3
    session.run(None, {"n": np.int64(2)}, limited(20))


def test_a_call_that_waits_for_another_that_is_profiled_ends(tmp_path: Any) -> None:
    options = SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "trace")
    session = InferenceSession(model(COUNTED), options, cache=False)
    assert while_another_call_runs(session, feed(3)) < 3
    session.end_profiling()


def test_threads_of_a_call_end_with_it() -> None:
    text = COUNTED.replace("[4]", "[65536]")
    session = session_of(text, threads=2)
    with pytest.raises(TimeLimitError):
        session.run(None, {"n": np.int64(FOREVER), "x": np.ones(65536, np.float32)}, limited(0.05))
    assert session.run(None, {"n": np.int64(1), "x": np.zeros(65536, np.float32)})[0].any() == np.False_


INTERRUPTED = """
import os, signal, sys, threading
import numpy as np
from glow_mlir import InferenceSession
{before}
session = InferenceSession(sys.stdin.buffer.read(), cache=False)
given = {{"n": np.int64(3), "x": np.ones(4, np.float32)}}
session.run(None, given)
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    session.run(None, {{**given, "n": np.int64(1 << 60)}})
except BaseException as error:
    print(type(error).__name__, error)
print(session.run(None, given)[0].shape)
"""


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("", "KeyboardInterrupt "),
        (
            "reader, writer = os.pipe(); os.set_blocking(writer, False); signal.set_wakeup_fd(writer)",
            "KeyboardInterrupt ",
        ),
    ],
    ids=["plain", "own-descriptor"],
)
@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_loop(before: str, told: str) -> None:
    program = INTERRUPTED.format(before=before)
    if "reader" in before:
        program += "print(os.read(reader, 9), signal.set_wakeup_fd(-1) == writer)\n"
        told += "\n(4,)\nb'\\x02' True"
    else:
        told += "\n(4,)"
    done = subprocess.run(
        [sys.executable, "-c", program], input=model(COUNTED), capture_output=True, timeout=60, check=False
    )
    assert done.stdout.decode().strip() == told, done.stderr.decode()


def output_of(program: str) -> str:
    """What a program prints, which reads a model."""
    done = subprocess.run(
        [sys.executable, "-c", program], input=model(COUNTED), capture_output=True, timeout=60, check=False
    )
    return done.stdout.decode().strip() or done.stderr.decode()


HANDLED = """
import os, signal, sys, threading
import numpy as np
from glow_mlir import InferenceSession
signal.signal(signal.SIGINT, lambda *_: print("seen"))
session = InferenceSession(sys.stdin.buffer.read(), cache=False, time_limit=0.5, backend="{backend}")
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    session.run(None, {{"n": np.int64(1 << 60), "x": np.ones(4, np.float32)}})
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.usefixtures("hears_ctrl_c")
def test_handlers_that_do_not_raise_let_a_call_go_on(backend: str) -> None:
    assert output_of(HANDLED.format(backend=backend)) == "seen\nTimeLimitError"


GIVEN_UP = """
import asyncio, os, signal, sys, threading, time
import numpy as np
from glow_mlir import InferenceSession
session = InferenceSession(sys.stdin.buffer.read(), cache=False, time_limit=10)
given = {"n": np.int64(3), "x": np.ones(4, np.float32)}
session.run(None, given)
async def program():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
asyncio.run(program())
begin = time.monotonic()
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    session.run(None, {**given, "n": np.int64(1 << 60)})
except BaseException as error:
    print(type(error).__name__, time.monotonic() - begin < 5)
"""


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_call_right_behind_somebody_else_who_gave_up_signals() -> None:
    assert output_of(GIVEN_UP) == "KeyboardInterrupt True"


MANY_FILES = """
import os, resource, sys
import numpy as np
from glow_mlir import InferenceSession
least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, most), most))
session = InferenceSession(sys.stdin.buffer.read(), cache=False, time_limit=0.05)
files = [os.dup(0) for _ in range(1100)]
try:
    session.run(None, {"n": np.int64(1 << 33), "x": np.ones(4, np.float32)})
except TimeoutError as error:
    print(type(error).__name__)
"""


def test_limits_hold_where_many_files_are_open() -> None:
    assert output_of(MANY_FILES) == "TimeLimitError"


def test_a_child_of_fork_watches_for_itself(counted: InferenceSession) -> None:
    counted.run(None, feed(3), limited(60))
    child = os.fork()
    if child == 0:
        try:
            counted.run(None, feed(FOREVER), limited(0.05))
        except TimeLimitError:
            os._exit(7)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_asyncio_keeps_its_signals(counted: InferenceSession) -> None:
    async def program() -> int:
        seen = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
        counted.run(None, feed(3))
        os.kill(os.getpid(), signal.SIGUSR1)
        counted.run(None, feed(3))
        await asyncio.wait_for(seen.wait(), 20)
        return 1

    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread hears signals")
    assert asyncio.run(program()) == 1


def ignored(*_: Any) -> None:
    """A handler of signals that does nothing."""


@pytest.fixture
def foreign_descriptor() -> Generator[tuple[int, int]]:
    """A pipe that hears signals, and what reads it; the handler of SIGUSR1 does nothing."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before, handler = signal.set_wakeup_fd(writer), signal.signal(signal.SIGUSR1, ignored)
    yield reader, writer
    signal.set_wakeup_fd(before)
    signal.signal(signal.SIGUSR1, handler)
    os.close(reader)


def test_signals_at_the_end_of_a_call_reach_whoever_had_the_descriptor(foreign_descriptor: tuple[int, int]) -> None:
    reader, writer = foreign_descriptor
    dog, interval = Watchdog(), sys.getswitchinterval()
    try:
        sys.setswitchinterval(5)  # The other thread gets to read what came only when the call is over.
        dog.listen()
        os.kill(os.getpid(), signal.SIGUSR1)
        dog.give_back()
    finally:
        sys.setswitchinterval(interval)
    assert select.select([reader], [], [], 20)[0]
    assert os.read(reader, 9) == bytes([signal.SIGUSR1])
    assert signal.set_wakeup_fd(-1) == writer


def test_signals_are_not_passed_on_to_what_is_no_descriptor_of_signals_any_more(
    foreign_descriptor: tuple[int, int], counted: InferenceSession
) -> None:
    """It may be any file by then."""
    reader, _ = foreign_descriptor
    counted.run(None, feed(3))
    before = signal.set_wakeup_fd(-1)
    for _ in range(2):
        counted.run(None, feed(3))
        os.kill(os.getpid(), signal.SIGUSR1)
    with pytest.raises(TimeLimitError):
        call_with_signal(counted)
    assert not select.select([reader], [], [], 0.05)[0]
    assert signal.set_wakeup_fd(before) == -1


def call_with_signal(session: InferenceSession) -> None:
    """A call of the main thread that ends by its limit, during which a signal comes."""
    sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    sender.start()
    session.run(None, feed(FOREVER), limited(0.15))


def test_whoever_had_the_descriptor_is_warned_of_a_full_buffer_as_before(
    foreign_descriptor: tuple[int, int], counted: InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, writer = foreign_descriptor
    told = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    counted.run(None, feed(3))
    while select.select([], [writer], [], 0)[1]:
        os.write(writer, bytes(4096))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert [item.exc_type for item in told] == [BlockingIOError]


@pytest.mark.usefixtures("hears_ctrl_c")
def test_an_interrupt_at_the_end_of_a_call_is_not_that_of_the_next(counted: InferenceSession) -> None:
    interval, call = sys.getswitchinterval(), Cancellation()
    try:
        sys.setswitchinterval(5)  # The other thread gets to read what came only in the next call.
        with suppress(KeyboardInterrupt), Interruptible(Cancellation()):
            os.kill(os.getpid(), signal.SIGINT)
        with Interruptible(call):
            time.sleep(0.1)
    finally:
        sys.setswitchinterval(interval)
    call.check()


def test_a_handler_of_signals_may_take_the_descriptor(counted: InferenceSession) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def take(*_: Any) -> None:
        signal.set_wakeup_fd(writer)

    handler = signal.signal(signal.SIGUSR1, take)
    with pytest.raises(TimeLimitError):
        call_with_signal(counted)
    signal.signal(signal.SIGUSR1, handler)
    assert signal.set_wakeup_fd(-1) == writer
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("fault", ["full", "closed"])
def test_limits_hold_where_signals_cannot_be_passed_on(foreign_descriptor: tuple[int, int], fault: str) -> None:
    _, writer = foreign_descriptor
    dog, call = Watchdog(), Cancellation()
    dog.listen()
    if fault == "closed":
        os.close(writer)
    else:
        while select.select([], [writer], [], 0)[1]:
            os.write(writer, bytes(4096))
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.05)
    dog.give_back()
    dog.limit(call, 0.01, TimeLimitError("too long"))
    time.sleep(0.2)
    with pytest.raises(TimeLimitError):
        call.check()


def test_deadlines_of_any_number_and_length() -> None:
    dog, call = Watchdog(), Cancellation()
    for seconds in (1e300, *np.linspace(60, 50, 20_000)):  # Each ends before all that were.
        dog.limit(Cancellation(), float(seconds), TimeLimitError("too long"))
    dog.limit(call, 0.01, TimeLimitError("too long"))
    time.sleep(0.2)
    with pytest.raises(TimeLimitError):
        call.check()
