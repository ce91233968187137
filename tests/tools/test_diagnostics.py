"""Where errors point, how many come at once, and what a terminal sees of them."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from threading import Thread

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from in_process import Finished, run_tool

from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import cloned, source_location
from glow_mlir.ir.text import parse_unverified
from glow_mlir.tools import glow_import, glow_opt, glow_run
from glow_mlir.tools.mlir_text.expected_diagnostics import expected_diagnostics, mismatches

WRONG: str = """\
glow_high.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "glow_high.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "glow_high.add"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32> loc("sum")
  glow_high.return %x
}
glow_high.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %1 = "glow_high.neg"(%x) : (tensor<4xf32>) -> tensor<6xf32> loc(fused["minus", "sign"])
  %2 = "glow_high.neg"(%x) : (tensor<4xf32>) -> tensor<7xf32> loc("elsewhere.py":30:4)
  glow_high.return %x
}
"""
PLACES = [
    "<stdin>:3:3: error: node 'sum'",
    "<stdin>:7:3: error: node 'minus+sign'",
    "<stdin>:8:3: error: glow_high.neg",
]


def opt(*arguments: str, stdin: str = "", directory: Path | None = None) -> Finished:
    """Run glow-opt in process."""
    return run_tool(glow_opt.main, arguments, program="glow-opt", stdin=stdin.encode(), directory=directory)


def test_each_wrong_operation_is_named_at_its_own_line() -> None:
    finished = opt(stdin=WRONG)
    assert finished.code == 1
    for line, place in zip(finished.stderr.decode().splitlines(), PLACES, strict=True):
        assert line.startswith(place)


def test_an_operation_around_a_wrong_one_is_not_blamed_for_it() -> None:
    lines = opt(stdin='builtin.module {\n  builtin.module {\n"arith.negf"() : () -> i8\n}\n}\n').stderr.decode()
    assert lines.count("\n") == 1
    assert lines.startswith("<stdin>:3:1: error: arith.negf")


def test_errors_of_all_pieces_come_in_one_run() -> None:
    finished = opt("--split-input-file", stdin=f"{WRONG}// -----\n{WRONG}")
    assert finished.stderr.count(b"error:") == 6
    assert b"<stdin>:18:3: error: node 'minus+sign'" in finished.stderr


def test_models_that_were_imported_have_lines_too(tmp_path: Path) -> None:
    model = str(ROOT / "examples" / "digits.onnx")
    assert run_tool(glow_import.main, [model, "--bind", "N=1", "-o", "d.mlir"], directory=tmp_path).code == 0
    text = (tmp_path / "d.mlir").read_text()
    wrong = text.replace('tensor<1x10xf32> loc("softmax")', 'tensor<1x11xf32> loc("softmax")')
    (tmp_path / "d.mlir").write_text(wrong)
    line = next(number for number, line in enumerate(wrong.splitlines(), 1) if 'loc("softmax")' in line)
    for tool in (glow_opt.main, glow_run.main):
        finished = run_tool(tool, ["d.mlir"], directory=tmp_path)
        assert finished.stderr.decode().startswith(f"d.mlir:{line}:5: error: node 'softmax': glow_high.softmax")


def test_a_pass_names_the_line_that_its_operation_comes_from() -> None:
    text = WRONG[: WRONG.index("glow_high.func @g")].replace("tensor<5xf32>", "tensor<4xf32>")
    text = text.replace("return %x", 'return %x loc("back")')
    finished = opt("-p", "canonicalize,assign-target{target=avx2},glow-high-to-glow-low,verify-selected", stdin=text)
    assert finished.code == 1
    assert finished.stderr.decode().startswith(
        "<stdin>:4:3: error: 1 operator is not supported by kernel selection: glow_low.copy ('back')"
    ), finished.stderr.decode()


def test_what_stands_behind_its_use_has_a_note() -> None:
    text = """\
glow_high.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %1 = "glow_high.neg"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "glow_high.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  glow_high.return %1
}
"""
    first, second = opt(stdin=text).stderr.decode().splitlines()
    assert first.startswith("<stdin>:2:3: error: glow_high.neg: an operand is used before")
    assert second == "<stdin>:3:3: note: it is defined here"


def test_clones_know_their_places() -> None:
    module = cloned(parse_unverified(WRONG, new_context(), "x.mlir"))
    places = [source_location(op) for op in module.walk() if op.name == "glow_high.neg"]
    assert places == ["x.mlir:7:3", "x.mlir:8:3"]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_sees_the_line_and_a_caret(colour: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv("NO_COLOR", "" if colour else "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "x.mlir").write_text(WRONG + f'"{"x" * 300}" !\n')
    (tmp_path / "y.mlir").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    assert glow_opt.main(["y.mlir"]) == 1
    lines = stream.getvalue().splitlines()
    caret = "\033[1;32m^\033[0m" if colour else "^"
    assert lines[1] == '  %1 = "glow_high.add"(%0, %x) : (tensor<4xf32>, tensor<4xf'
    assert lines[2] == f"  {caret}"
    assert ("\033[" in stream.getvalue()) == colour

    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    assert glow_opt.main(["x.mlir"]) == 1
    _, shown, below = stream.getvalue().splitlines()
    assert len(shown) == 59
    assert shown[below.replace(caret, "^").index("^")] == "!"


def test_what_is_no_terminal_sees_lines_alone() -> None:
    assert b"\033" not in opt(stdin=WRONG).stderr
    assert len(opt(stdin=WRONG).stderr.splitlines()) == 3


EXPECTED = """\
// expected-error@below {{first}}
// expected-error@below {{second}}
operation // expected-note {{third}}
// expected-warning@above {{fourth}}
// expected-error-re@-2 {{of {{[0-9]+}} kinds ({{a|b}})}}
// expected-error@unknown {{nowhere}}
"""
FOUND = [
    ("error", GlowError("the first", file="x:3:1")),
    ("error", GlowError("the second", file="x:3:9")),
    ("note", GlowError("the third", file="x:3:9")),
    ("warning", GlowError("the fourth", file="x:3:9")),
    ("error", GlowError("of 12 kinds (b)", file="x:3:9")),
    ("error", GlowError("nowhere", file="x")),
]


@given(st.permutations(FOUND))
def test_diagnostics_match_comments_in_any_order(found: list[tuple[str, GlowError]]) -> None:
    assert mismatches(expected_diagnostics(EXPECTED), found, "x") == []


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_each_missing_or_further_diagnostic_is_told(number: int) -> None:
    expected = expected_diagnostics(EXPECTED)
    severity, error = FOUND[number]
    (missing,) = mismatches(expected, [*FOUND[:number], *FOUND[number + 1 :]], "x")
    assert f'expected {severity} "' in missing.reason
    (twice,) = mismatches(expected, [*FOUND, FOUND[number]], "x")
    assert twice.reason == f"unexpected {severity}: {error.reason}"


def test_comments_find_each_error_of_one_run() -> None:
    lines: list[str] = WRONG.splitlines()
    for number, part in ((7, "tensor<7xf32>"), (6, "tensor<6xf32>"), (2, "tensor<5xf32>")):
        lines[number] += f" // expected-error {{{{{part}}}}}"
    text = "\n".join(lines)
    assert opt("--verify-diagnostics", stdin=text) == Finished(0, b"", b"")
    mended = text.replace("-> tensor<6xf32>", "-> tensor<4xf32>")
    lines = opt("--verify-diagnostics", stdin=mended).stderr.decode().splitlines()
    assert lines == ['<stdin>:7:1: error: expected error "tensor<6xf32>" was not produced']


def test_a_folder_of_the_terminal_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert glow_opt.main([os.curdir]) == 1
    assert stream.getvalue() == ".: error: cannot be read: Is a directory\n"


def test_a_pipe_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    os.mkfifo(path := tmp_path / "pipe")
    writer = Thread(target=path.write_text, args=("glow_high.nope\n",))
    writer.start()
    assert glow_opt.main([str(path)]) == 1
    writer.join()
    assert stream.getvalue().startswith(f"{path}:1:")
    assert stream.getvalue().count("\n") == 1


def test_comments_count_lines_as_parsers_do() -> None:
    lines = WRONG.splitlines()[:5]
    lines[2] += " // expected-error {{tensor<5xf32>}}"
    text = "\n".join(["// \u2028, \f and \x85 end no line", *lines])
    assert opt("--verify-diagnostics", stdin=text).stderr == b""


def test_an_unknown_operation_is_named_at_its_place_with_the_nearest_known_one() -> None:
    text = "glow_high.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = glow_high.rellu %x : tensor<4xf32>\n}\n"
    line = opt(stdin=text).stderr.decode()
    assert line == "<stdin>:2:8: error: Operation glow_high.rellu is not registered; is it glow_high.relu?\n"
