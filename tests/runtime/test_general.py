"""Code for a range of sizes that nobody has said, beside code for sizes of calls: which range, and which calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from beside_calls import at_work, settle
from garbage import collect_garbage

from glow_mlir.errors import (
    CancelledError,
    ExecutionError,
    GlowError,
    InputError,
    InputValuesError,
    OutOfMemoryError,
    UnsupportedError,
)
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.background_compilation import MAX_WAITING
from glow_mlir.runtime.executable import MAIN, EntryPoint, Executable
from glow_mlir.runtime.general import MAX_RANGES, largest_sizes
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.runtime.specialization import Loaded, Making
from glow_mlir.runtime.specializations import SpecializationLimits, Specializations
from glow_mlir.runtime.state import State
from glow_mlir.support.activity import warning_to
from glow_mlir.support.cancellation import Cancellation, cancelled_by, check_cancellation

NOTHING = np.zeros(0)


class _Point(EntryPoint):
    """Gives what it was compiled for, or fails."""

    def __init__(self, text: str, error: GlowError | None) -> None:
        super().__init__(text, (), State([]))
        self._error = error

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self._error is not None:
            raise self._error
        return {self.name: NOTHING}


class _Code(Executable):
    def __init__(self, text: str, activations: int, error: GlowError | None) -> None:
        super().__init__([MAIN], State([]))
        self._point = _Point(text, error)
        self._activations = activations

    @property
    def activation_bytes(self) -> int:
        return self._activations

    def load(self, name: str) -> EntryPoint:
        return self._point


class Compiler:
    """Compiles as it is told, and keeps what."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.refuses: Callable[[Assumptions], bool] = lambda _: False
        self.fails: dict[str, GlowError] = {}
        self.activations: Callable[[Assumptions], int] = lambda _: 0
        self.limits = SpecializationLimits(threshold=2)
        self.stored: dict[Assumptions, Loaded] = {}
        self.opened: list[Assumptions] = []

    def __call__(self, assumptions: Assumptions) -> Loaded:
        self.made.append(str(assumptions))
        if self.refuses(assumptions):
            raise UnsupportedError(f"not for {assumptions}")
        return Loaded(_Code(str(assumptions), self.activations(assumptions), self.fails.get(str(assumptions))))

    def beside(self, assumptions: Assumptions) -> Loaded:
        """Compile when it may go on."""
        while not self.go_on.wait(0.01):
            check_cancellation()
        return self(assumptions)

    def model(self, *shape: int | str | None, known: Assumptions | None = None) -> Specializations:
        """A model of an input of that shape, or of any rank."""
        argument = Argument(
            "x", "float32", None if None in shape else tuple(size for size in shape if size is not None)
        )
        signature = Signature((argument,), (argument,))
        making = Making(self, self.beside, self.stored.get, opened=self.opened.append)
        return Specializations(signature, (), making, self.limits, known=known)


def serves(model: Specializations, *shape: int) -> str:
    """What a call with an input of that shape is served by."""
    (found,) = model.entry().run({"x": np.zeros(shape)})
    return found


def test_the_second_size_waits_for_nothing() -> None:
    compiler = Compiler()
    model = compiler.model("N")
    assert serves(model, 3) == "N=3"
    settle()
    assert [serves(model, size) for size in (5, 64, 3, 1)] == ["N=1..64", "N=1..64", "N=3", "N=1..64"]
    assert compiler.made == ["N=3", "N=1..64"]
    assert [(item.sizes, item.calls, item.is_background) for item in model.kept()] == [
        ({"N": 3}, 2, False),
        ({"N": (1, 64)}, 3, True),
    ]
    assert serves(model, 3) == "N=3"
    assert [item.sizes for item in model.kept()] == [{"N": (1, 64)}, {"N": 3}]


def test_what_comes_often_takes_over_between_two_calls() -> None:
    """Where it cannot be compiled, that is told once, and code for the range goes on to serve."""
    compiler, warnings = Compiler(), list[GlowError]()
    compiler.refuses = lambda assumptions: assumptions.sizes == (("N", 7),)
    model = compiler.model("N")
    serves(model, 3)
    settle()
    compiler.go_on.clear()
    with warning_to(warnings.append):
        assert [serves(model, size) for size in (5, 7, 5, 7, 5, 7)] == ["N=1..64"] * 6
        compiler.go_on.set()
        settle()
        assert [serves(model, size) for size in (5, 7, 7, 7)] == ["N=5", "N=1..64", "N=1..64", "N=1..64"]
    assert [str(warning) for warning in warnings] == ["not for N=7"]
    assert compiler.made == ["N=3", "N=1..64", "N=5", "N=7"]


def test_a_call_that_comes_before_it_is_done_waits_for_it() -> None:
    compiler = Compiler()
    compiler.go_on.clear()
    model = compiler.model("N")
    serves(model, 3)
    threading.Timer(0.1, compiler.go_on.set).start()
    assert serves(model, 4) == "N=1..64"
    assert compiler.made == ["N=3", "N=1..64"]


def test_what_is_larger_makes_the_range_larger() -> None:
    compiler = Compiler()
    model = compiler.model("N")
    found = list[str]()
    for size in (3, 100, 65, 1000, 100):
        found.append(serves(model, size))
        settle()
    assert found == ["N=3", "N=100", "N=1..512", "N=1000", "N=100"]
    assert compiler.made == ["N=3", "N=1..64", "N=100", "N=1..512", "N=1000", "N=1..4096"]


def test_sizes_of_nothing_are_in_the_range_of_those_that_have_seen_one() -> None:
    compiler = Compiler()
    model = compiler.model("N")
    for size in (0, 5, 3):
        serves(model, size)
        settle()
    assert compiler.made == ["N=0", "N=0..64"]
    other = compiler.model("N")
    for size in (5, 0, 3):
        serves(other, size)
        settle()
    assert compiler.made[2:] == ["N=5", "N=1..64", "N=0", "N=0..64"]


def test_dimensions_that_cannot_be_open_keep_their_sizes() -> None:
    """Code for another size of these comes with the second call that brings it."""
    compiler = Compiler()
    compiler.refuses = lambda assumptions: isinstance(dict(assumptions.sizes).get("C"), tuple)
    model = compiler.model("N", "C", "W")
    serves(model, 2, 3, 5)
    settle()
    tried = ["N=1..64, C=1..64, W=1..64", "N=2..64, C=2..64, W=4..64"]
    one = ["N=2..64, C=3, W=5", "N=2..64, C=2..64, W=5", "N=2..64, C=3, W=4..64"]
    assert compiler.made == ["N=2, C=3, W=5", *tried, *one]
    assert serves(model, 9, 3, 6) == "N=2..64, C=3, W=4..64"
    for rows in (2, 3, 4, 5):
        serves(model, rows, 4, 5)
        settle()
    assert serves(model, 7, 4, 6) == "N=2..64, C=4, W=4..64"


def test_images_are_as_large_as_their_windows() -> None:
    compiler = Compiler()
    compiler.refuses = lambda assumptions: any(isinstance(s, tuple) and s[0] < 7 for _, s in assumptions.sizes)
    model = compiler.model("H")
    serves(model, 20)
    settle()
    assert serves(model, 16) == "H=16..128"
    assert serves(model, 9) == "H=9"
    settle()
    assert serves(model, 15) == "H=8..128"


def test_what_refuses_all_ranges_is_compiled_for_each_size() -> None:
    compiler = Compiler()
    compiler.refuses = lambda assumptions: any(isinstance(size, tuple) for _, size in assumptions.sizes)
    model = compiler.model("N")
    found = list[str]()
    for size in (2, 3, 4, 3):
        found.append(serves(model, size))
        settle()
    assert found == ["N=2", "N=3", "N=4", "N=3"]
    assert compiler.made == ["N=2", "N=1..64", "N=2..64", "N=3", "N=4"]


def test_values_that_fix_shapes_leave_nothing_open() -> None:
    compiler = Compiler()

    def needs(assumptions: Assumptions) -> bool:
        if not assumptions.values:
            raise InputValuesError("the shape depends on inputs", ["x"])
        return False

    compiler.refuses = needs
    model = compiler.model("N")
    assert serves(model, 1) == "N=1, x=[0.0]"
    assert serves(model, 2) == "N=2, x=[0.0, 0.0]"
    settle()
    assert len(compiler.made) == 3


def test_ranks_are_not_open() -> None:
    compiler = Compiler()
    model = compiler.model(None)
    serves(model, 2, 3)
    settle()
    assert serves(model, 5, 5) == "x.rank=2, x.0=1..64, x.1=1..64"
    assert serves(model, 5) == "x.rank=1, x.0=5"


def test_a_later_session_has_what_an_earlier_one_made() -> None:
    """Code for the range serves what there is no code for, and is not compiled again."""
    compiler = Compiler()
    serves(compiler.model("N"), 3)
    settle()
    (known,) = compiler.opened
    compiler.stored = {item: compiler(item) for item in (Assumptions((("N", 3),)), known)}
    compiler.made.clear()
    model = compiler.model("N", known=known)
    assert [serves(model, size) for size in (3, 5, 3, 64)] == ["N=3", "N=1..64", "N=3", "N=1..64"]
    settle()
    assert not compiler.made
    compiler.stored.clear()
    assert serves(compiler.model("N", known=known), 5) == "N=5"
    assert serves(compiler.model("N", known=known), 65) == "N=65"


@pytest.mark.parametrize("error", [ExecutionError("it fails"), OutOfMemoryError("too much"), InputError("sizes")])
def test_what_fails_in_code_for_a_range_is_said_by_code_for_the_sizes(error: GlowError) -> None:
    compiler = Compiler()
    compiler.fails["N=1..64"] = error
    model = compiler.model("N")
    serves(model, 3)
    settle()
    assert [serves(model, size) for size in (5, 5, 3)] == ["N=5", "N=5", "N=3"]
    compiler.fails["N=6"] = ExecutionError("so does this")
    with pytest.raises(ExecutionError, match="so does this"):
        serves(model, 6)


def test_a_call_that_is_ended_is_not_made_again() -> None:
    compiler = Compiler()
    compiler.fails["N=1..64"] = CancelledError("the call was terminated")
    model = compiler.model("N")
    serves(model, 3)
    settle()
    with pytest.raises(CancelledError):
        serves(model, 5)
    assert compiler.made == ["N=3", "N=1..64"]


def test_a_range_fits_into_memory() -> None:
    """It is as large as activations let it be that grow as sizes do; what takes more becomes smaller."""
    compiler = Compiler()
    compiler.limits = SpecializationLimits(memory=1 << 12)
    compiler.activations = lambda assumptions: 1 << 4 if str(assumptions) == "N=4, W=16" else 1 << 11
    model = compiler.model("N", "W")
    serves(model, 4, 16)
    settle()
    assert serves(model, 3, 3) == "N=1..16, W=1..64"
    most = {"N=1..64": 1 << 13, "N=1..16": 1 << 12}
    compiler.activations = lambda assumptions: most.get(str(assumptions), 1)
    other = compiler.model("N")
    serves(other, 4)
    settle()
    assert serves(other, 3) == "N=1..16"
    compiler.activations = lambda _: (1 << 12) + 1
    third = compiler.model("N")
    serves(third, 4)
    settle()
    assert serves(third, 3) == "N=3"


def test_a_range_that_memory_does_not_hold_gives_up_sizes_of_before() -> None:
    compiler = Compiler()
    compiler.limits = SpecializationLimits(memory=1 << 20)
    compiler.activations = lambda assumptions: 1 << 21 if str(assumptions).startswith("N=1..64, W=1..512") else 1
    model = compiler.model("N", "W")
    serves(model, 1, 1)
    settle()
    assert serves(model, 64, 64) == "N=1..64, W=1..64"
    serves(model, 1, 100)
    settle()
    assert compiler.made[-2:] == ["N=1..64, W=1..512", "N=1..16, W=1..512"]
    assert serves(model, 16, 512) == "N=1..16, W=1..512"


def test_a_session_does_not_go_on_with_ranges_for_ever() -> None:
    compiler = Compiler()
    compiler.refuses = lambda assumptions: isinstance(dict(assumptions.sizes)["C"], tuple)
    model = compiler.model("N", "C")
    for channels in range(1, 40):
        for rows in (1, 2):
            serves(model, rows, channels)
            settle()
    opened = [text for text in compiler.made if text.startswith("N=1..64, C=") and ".." not in text.split("C=")[1]]
    assert len(opened) == MAX_RANGES


@pytest.mark.parametrize(
    ("sizes", "growth", "expected"),
    [
        ({"N": 1, "W": 224}, 1e9, {"N": 64, "W": 1024}),
        ({"N": 1, "W": 224}, 20.0, {"N": 4, "W": 1024}),
        ({"N": 1, "W": 224}, 1.0, {"N": 1, "W": 256}),
        ({"N": 0}, 0.5, {"N": 1}),
        ({}, 1.0, {}),
    ],
)
def test_the_dimension_that_grows_the_most_grows_less(
    sizes: dict[str, int], growth: float, expected: dict[str, int]
) -> None:
    assert largest_sizes(sizes, growth) == expected


def test_a_label_that_follows_from_others_is_told_by_them() -> None:
    compiler = Compiler()
    model = compiler.model("past", "tokens", "past + tokens")
    serves(model, 4, 3, 7)
    settle()
    assert serves(model, 5, 5, 10) == "past=1..64, tokens=1..64"


def test_what_is_compiled_beside_a_call_does_not_end_with_it() -> None:
    compiler, call = Compiler(), Cancellation()
    compiler.go_on.clear()
    model = compiler.model("N")
    with cancelled_by(call):
        serves(model, 3)
    call.cancel(CancelledError("the call was terminated"))
    compiler.go_on.set()
    settle()
    assert serves(model, 4) == "N=1..64"


def test_nothing_is_compiled_for_a_session_that_is_gone() -> None:
    compiler = Compiler()
    compiler.go_on.clear()
    model = compiler.model("N")
    serves(model, 3)
    assert at_work()
    del model
    collect_garbage()
    settle()
    assert compiler.made == ["N=3"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_compiles_itself_what_its_parent_is_at() -> None:
    compiler = Compiler()
    compiler.go_on.clear()
    model = compiler.model("N")
    serves(model, 3)
    child = os.fork()
    if not child:
        try:
            compiler.go_on = threading.Event()
            compiler.go_on.set()
            assert serves(model, 4) == "N=4"
            settle()
            assert serves(model, 5) == "N=1..64"
            os._exit(0)
        finally:
            os._exit(1)
    compiler.go_on.set()
    settle()
    assert os.waitpid(child, 0)[1] == 0
    assert serves(model, 4) == "N=1..64"


def test_one_thread_makes_what_all_sessions_ask_for() -> None:
    compilers = [Compiler() for _ in range(9)]
    models = [compiler.model("N") for compiler in compilers]
    for compiler, model in zip(compilers, models, strict=True):
        compiler.go_on.clear()
        serves(model, 3)
    assert len(at_work()) == 1
    for compiler in compilers:
        compiler.go_on.set()
    settle()
    assert [serves(model, 5) for model in models] == ["N=1..64"] * len(models)


def test_work_that_does_not_fit_into_the_queue_is_asked_for_again() -> None:
    """Neither is the range that was not made forgotten, nor a size that comes often."""
    compiler = Compiler()
    compiler.go_on.clear()
    busy = [compiler.model("N") for _ in range(MAX_WAITING + 1)]
    for model in busy:
        serves(model, 3)
    other = Compiler()
    model = other.model("N")
    assert serves(model, 3) == "N=3"
    compiler.go_on.set()
    settle()
    assert serves(model, 4) == "N=4"
    settle()
    assert serves(model, 6) == "N=1..64"


def test_more_hot_sizes_than_are_kept_settle() -> None:
    """Sizes in a circle: those that are compiled for the place of others need sixteen times as many calls each time."""
    compiler = Compiler()
    compiler.limits = SpecializationLimits(number=4, threshold=2)
    model = compiler.model("N")
    serves(model, 63)
    settle()
    for _ in range(100):
        for size in range(1, 21):
            serves(model, size)
        settle()
    assert len(compiler.made) <= 2 + 4 + 20, "each size once at most in a hundred turns"
    made = len(compiler.made)
    for _ in range(30):
        for size in range(1, 21):
            serves(model, size)
        settle()
    assert len(compiler.made) <= made + 4
