"""Pieces of `glow-run` alone: random numbers, images, tables, progress."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from glow_mlir.errors import CacheError
from glow_mlir.support.activity import warn
from glow_mlir.tools.command_line import CLEAR_LINE, run_tool
from glow_mlir.tools.inputs.images import Image, Normalization
from glow_mlir.tools.inputs.run_inputs import random_array
from glow_mlir.tools.reports.latency import Budget, measure
from glow_mlir.tools.reports.progress import Progress
from glow_mlir.tools.reports.run_report import OutputSummary, statistics, vectors
from glow_mlir.tools.reports.tables import plain_table, print_table, shortened


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int64", 0, 1), ("int32", 0, 1), ("uint8", 0, 255), ("int8", -128, 127), ("bool", 0, 1)],
)
def test_random_integers_are_small_and_random_bytes_are_all(dtype: str, low: int, high: int) -> None:
    array = random_array((5000,), np.dtype(dtype), np.random.default_rng(0))
    assert array.dtype == dtype
    assert (int(array.min()), int(array.max())) == (low, high)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_random_floats_are_around_zero(dtype: str) -> None:
    array = random_array((5000,), np.dtype(dtype), np.random.default_rng(0))
    assert array.dtype == dtype
    assert abs(float(array.astype(np.float64).mean())) < 0.1


def test_scalar_input_has_no_axes() -> None:
    assert random_array((), np.dtype("float32"), np.random.default_rng(0)).shape == ()


def colours(tmp_path: Path) -> tuple[Image, np.ndarray]:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 3), np.uint8)
    path = tmp_path / "x.ppm"
    path.write_bytes(b"P6 3 2 255\n" + pixels.tobytes())
    return Image(path), pixels


def test_channels_are_normalized_one_by_one(tmp_path: Path) -> None:
    image, pixels = colours(tmp_path)
    mean, stddev = (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)
    wanted = (pixels / 255 - mean) / stddev
    first = Normalization("NCHW", None, mean, stddev).batch([image], (1, 3, 2, 3), np.dtype("float32"))
    np.testing.assert_allclose(first[0], wanted.transpose(2, 0, 1), rtol=1e-6)
    last = Normalization("NHWC", None, mean, stddev).batch([image], (1, 2, 3, 3), np.dtype("float64"))
    np.testing.assert_allclose(last[0], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("mode", "low", "high"), [("0to1", 0, 1), ("neg1to1", -1, 1), ("0to255", 0, 255), ("neg128to127", -128, 127)]
)
def test_modes_say_what_they_give(tmp_path: Path, mode: str, low: int, high: int) -> None:
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P5 2 1 255\n\x00\xff")
    values = Normalization(mode=mode).batch([Image(path)], (1, 1, 1, 2), np.dtype("float32"))
    np.testing.assert_allclose(values.reshape(-1), [low, high], atol=1e-6)


def test_integer_inputs_get_the_pixels_themselves(tmp_path: Path) -> None:
    image, pixels = colours(tmp_path)
    found = Normalization("NHWC").batch([image, image], (2, 2, 3, 3), np.dtype("uint8"))
    np.testing.assert_array_equal(found, [pixels, pixels])


def test_statistics_leave_out_what_is_not_finite() -> None:
    assert statistics(np.array([1, np.nan, 3, np.inf], np.float32)) == {
        "min": 1.0,
        "max": 3.0,
        "mean": 2.0,
        "not_finite": 2,
    }
    (row,) = OutputSummary({"y": np.array([np.nan], np.float32)}).data()
    assert (row["min"], row["not_finite"]) == (None, 1)


@pytest.mark.parametrize(
    ("shape", "count"),
    [((5,), 1), ((2, 5), 2), ((1, 5, 1, 1), 1), ((9, 5), 0), ((2, 3, 4), 0), ((), 0), ((1,), 0), ((0, 5), 0)],
)
def test_vectors_are_what_a_classifier_gives(shape: tuple[int, ...], count: int) -> None:
    assert len(vectors(np.zeros(shape))) == count


def test_empty_and_scalar_outputs_have_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    OutputSummary({"none": np.zeros((0, 2)), "one": np.array(3, np.float32), "truth": np.array([True, False])}).show()
    rows = capsys.readouterr().out.splitlines()
    assert rows[2].split() == ["none", "float64[0,", "2]", "-", "-", "-", "0"]
    assert rows[3].split() == ["one", "float32[]", "3", "3", "3", "0"]
    assert rows[4].split()[2:] == ["0", "1", "0.5", "0"]


class Clock:
    """A clock in nanoseconds that only runs move on: each takes a millisecond."""

    def __init__(self) -> None:
        self.now = 0
        self.runs = 0

    def run(self) -> None:
        """One run."""
        self.now += 1_000_000
        self.runs += 1


@pytest.mark.parametrize(
    ("budget", "measured", "unmeasured"),
    [
        (Budget(7, 0.0, 0.0), 7, 1),
        (Budget(1, 0.0105, 0.0), 11, 1),  # The last run ends behind the duration.
        (Budget(1, 0.011, 0.0), 11, 1),
        (Budget(20, 0.0105, 0.0), 20, 1),
        (Budget(1, 0.0, 4.5), 1, 5),
        (Budget(0, 0.0, 0.0), 1, 1),
    ],
)
def test_budget_has_all_bounds(budget: Budget, measured: int, unmeasured: int) -> None:
    clock = Clock()
    found = measure(clock.run, budget, clock=lambda: clock.now)
    assert (len(found.begins), clock.runs) == (measured, measured + unmeasured)
    assert found.data()["walltime_seconds"] == pytest.approx(measured / 1000)
    assert found.milliseconds.tolist() == [1.0] * measured


def test_plain_table_is_aligned() -> None:
    text = plain_table("t", {"name": "left", "n": "right"}, [["a", "10"], ["bcdef", "2"]])
    assert text == "t\n  name    n\n  a      10\n  bcdef   2"


def test_long_cells_lose_their_middle() -> None:
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("abcdefghijk", 7) == "abc…ijk"


def test_terminal_gets_coloured_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_table("t", {"name": "left"}, [["[bold]plain"], ["wrong"]], {1})
    assert "\033[" in stream.getvalue()
    assert "[bold]plain" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", other := Terminal())
    print_table("t", {"name": "left"}, [["x"]])
    assert other.getvalue() == "t\n  name\n  x\n"


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress()
        progress.say("working")
        progress.clear()
        assert ("working …" in stream.getvalue()) == shown


def test_warning_takes_the_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    def action(arguments: list[str]) -> int:
        progress = Progress()
        progress.say("working")
        for _ in range(2):
            warn(CacheError("reason", file="folder", hint="do this"))
        return 7

    monkeypatch.setenv("NO_COLOR", "1")
    for stream, expected in (
        (Terminal(), f"{CLEAR_LINE}working …{CLEAR_LINE}folder: warning: reason (hint: do this)\n"),
        (io.StringIO(), "folder: warning: reason (hint: do this)\n"),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        assert run_tool("tool", action, []) == 7
        assert stream.getvalue() == expected
