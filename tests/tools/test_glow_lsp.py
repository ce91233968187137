"""`glow-lsp`, asked by a client over stdin and stdout, as editors do."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filecheck_runner import filecheck_tests
from lsp_client import Editor
from lsprotocol import types

from glow_mlir.tools.lsp.document import QUALIFIERS, Document

TEXT = """\
glow_high.constant @w : tensor<2xf32> {value = dense<1.0> : tensor<2xf32>}

glow_high.func @main(%x: tensor<3x2xf32>, %go: tensor<i1>) -> tensor<2xf32> {
  %w = glow_high.get @w : tensor<2xf32>
  // %w is no use here
  %last, %all = glow_high.loop %i = 3 (%a = %w) over (%row = %x) {
    %0 = glow_high.add %a, %row : tensor<2xf32> loc("sum")
    %1 = glow_high.mul %0, %w : tensor<2xf32>
    glow_high.yield %1, %0
  } : tensor<2xf32>, tensor<3x2xf32>
  %y = glow_high.if %go {
    %0 = glow_high.relu %last : tensor<2xf32>
    glow_high.yield %0
  } else {
    glow_high.yield %last
  } : tensor<2xf32>
  glow_high.return %y
}
// -----
glow_high.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = glow_high.relu %x : tensor<4xf32>
  glow_high.return %y
}
"""
URI = "file:///main.mlir"
LINES = TEXT.split("\n")


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    with Editor() as found:
        assert found.open(URI, TEXT) == []
        yield found


def place(line: str, name: str, number: int = 0) -> tuple[int, int]:
    """The line that contains a text, and where a name stands in it for the nth time, plus one."""
    (found,) = [index for index, text in enumerate(LINES) if line in text]
    column = -1
    for _ in range(number + 1):
        column = LINES[found].index(name, column + 1)
    return found, column + 1


def start(found: Any) -> tuple[int, int]:
    """Where a range or the range of a location starts."""
    begin = getattr(found, "range", found).start
    return begin.line, begin.character


@pytest.mark.parametrize(
    ("use", "definition"),
    [
        (("mul %0, %w", "%w"), ("glow_high.get", "%w")),
        (("mul %0, %w", "%0"), ("%0 = glow_high.add", "%0")),
        (("glow_high.add %a", "%a"), ("glow_high.loop", "%a =")),
        (("glow_high.add %a", "%row"), ("glow_high.loop", "%row")),
        (("glow_high.loop", "%x"), ("@main", "%x")),
        (("glow_high.get", "@w"), ("glow_high.constant", "@w")),
        (("glow_high.relu %last", "%last"), ("glow_high.loop", "%last")),
        (("glow_high.relu %x", "%x"), ("@other", "%x")),
    ],
)
def test_definitions_are_found_in_and_around_regions(
    editor: Editor, use: tuple[str, str], definition: tuple[str, str]
) -> None:
    found = editor.ask(types.TEXT_DOCUMENT_DEFINITION, URI, *place(*use))
    line, column = place(*definition)
    assert start(found) == (line, column - 1)


def test_a_name_of_two_regions_is_two_values(editor: Editor) -> None:
    in_if = place("relu %last", "%0")
    assert {start(item)[0] for item in editor.ask(types.TEXT_DOCUMENT_REFERENCES, URI, *in_if)} == {11, 12}
    in_loop = place("mul %0", "%0")
    assert {start(item)[0] for item in editor.ask(types.TEXT_DOCUMENT_REFERENCES, URI, *in_loop)} == {6, 7, 8}


def test_references_leave_out_comments_and_other_modules(editor: Editor) -> None:
    found = editor.ask(types.TEXT_DOCUMENT_REFERENCES, URI, *place("glow_high.get", "%w"))
    assert [start(item)[0] for item in found] == [3, 5, 7]
    assert len(editor.ask(types.TEXT_DOCUMENT_REFERENCES, URI, *place("@other", "%x"))) == 2


def hover(editor: Editor, line: int, column: int) -> str:
    return editor.ask(types.TEXT_DOCUMENT_HOVER, URI, line, column).contents.value


def test_hover_on_an_operation_is_its_documentation(editor: Editor) -> None:
    text = hover(editor, *place("relu %last", "glow_high"))
    assert text.startswith("**glow_high.relu**")
    assert "ONNX Relu" in text
    assert "| operand | `input` | tensor of numbers |" in text
    assert "(tensor<2xf32>) -> (tensor<2xf32>)" in text
    assert "| property | `value`? | elements |" in hover(editor, *place("glow_high.constant", "glow_high"))


@pytest.mark.parametrize(
    ("at", "type_"),
    [
        (("yield %1", "%1"), "%1 : tensor<2xf32>"),
        (("glow_high.add %a", "%row"), "%row : tensor<2xf32>"),
        (("glow_high.loop", "%i"), "%i : tensor<i64>"),
        (("glow_high.loop", "%all"), "%all : tensor<3x2xf32>"),
        (("@main", "%go"), "%go : tensor<i1>"),
    ],
)
def test_hover_on_a_value_is_its_type(editor: Editor, at: tuple[str, str], type_: str) -> None:
    assert type_ in hover(editor, *place(*at))


def test_hover_on_a_symbol_is_what_it_names(editor: Editor) -> None:
    assert "glow_high.constant @w : tensor<2xf32>" in hover(editor, *place("glow_high.get", "@w"))


def test_outline_nests_as_regions_do(editor: Editor) -> None:
    found = {item.name: item for item in editor.symbols(URI)}
    assert list(found) == ["@w", "@main", "@other"]
    inside = {item.name: item for item in found["@main"].children or ()}
    assert list(inside) == ["%w", "%last, %all", "%y"]
    assert [item.name for item in inside["%last, %all"].children or ()] == ["%0", "%1"]
    assert (found["@main"].range.start.line, found["@main"].range.end.line) == (2, 17)


def completed(editor: Editor, text: str) -> list[str]:
    """What can be typed at the `|` of a text."""
    uri, (before, _, after) = "file:///typed.mlir", text.partition("|")
    editor.open(uri, before + after)
    line = before.count("\n")
    found = editor.ask(types.TEXT_DOCUMENT_COMPLETION, uri, line, len(before.rpartition("\n")[2]))
    editor.close(uri)
    return [item.label for item in found]


FUNCTION = "glow_high.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  "


def test_completion_offers_operations(editor: Editor) -> None:
    assert "glow_high.conv" in completed(editor, f"{FUNCTION}%y = glow_high.co|\n}}")
    assert {"glow_high.relu", "glow_low.relu", "llvm.call"} <= set(completed(editor, f"{FUNCTION}%y = |\n}}"))
    assert all(name.startswith("scf.") for name in completed(editor, f"{FUNCTION}scf.|\n}}"))


def test_completion_offers_values_in_scope(editor: Editor) -> None:
    text = f"{FUNCTION}%a = glow_high.relu %x : tensor<4xf32>\n  %b = glow_high.add %|\n  %c = glow_high.relu %x\n}}"
    assert sorted(completed(editor, text)) == ["%a", "%x"]
    other = f"{FUNCTION}\n}}\nglow_high.func @g(%z: tensor<f32>) {{\n  glow_high.return %|\n}}"
    assert completed(editor, other) == ["%z"]


def test_completion_offers_symbols_and_attributes(editor: Editor) -> None:
    assert "@f" in completed(editor, f"{FUNCTION}glow_high.get @|\n}}")
    found = completed(editor, f"{FUNCTION}%y = glow_high.conv %x, %x {{|}} : tensor<4xf32>\n}}")
    assert {"strides", "pads", "group"} <= set(found)
    assert "operandSegmentSizes" not in found


def test_errors_stand_at_the_operation_or_name(editor: Editor) -> None:
    uri = "file:///wrong.mlir"
    bad = TEXT.replace("%last : tensor<2xf32>\n    glow_high.yield", "%last : tensor<5xf32>\n    glow_high.yield")
    (found,) = editor.open(uri, bad)
    assert bad.split("\n")[found.range.start.line][found.range.start.character : found.range.end.character] == (
        "glow_high.relu"
    )
    assert "5xf32" in found.message
    (found,) = editor.change(uri, TEXT.replace("relu %x", "relu %nowhere"))
    assert start(found) == (20, 22)
    assert found.message == "SSA value used before assignment"
    assert editor.change(uri, TEXT) == []
    editor.close(uri)


def test_errors_of_operations_with_locations_have_their_own_lines(editor: Editor) -> None:
    uri = "file:///located.mlir"
    found, *_ = editor.open(
        uri, TEXT.replace('%a, %row : tensor<2xf32> loc("sum")', '%a, %row : tensor<7xf32> loc("sum")')
    )
    assert found.range.start.line == 6
    assert "node 'sum'" in found.message
    editor.close(uri)


def test_a_value_that_is_never_defined_is_marked_where_it_is_used(editor: Editor) -> None:
    uri = "file:///undefined.mlir"
    (found,) = editor.open(uri, "func.func @f() -> i32 {\n  func.return %y : i32\n}\n")
    assert (start(found), found.range.end.character) == ((1, 14), 16)
    editor.close(uri)


def test_each_module_of_a_file_has_its_errors(editor: Editor) -> None:
    uri = "file:///split.mlir"
    text = "glow_high.nonsense\n// -----\nglow_high.func @f() {\n// -----\n" + TEXT
    assert [item.range.start.line for item in editor.open(uri, text)] == [0, 3]
    editor.close(uri)


def test_only_the_last_of_many_changes_is_checked(editor: Editor) -> None:
    uri = "file:///changes.mlir"
    editor.open(uri, TEXT)
    assert editor.change(uri, *(TEXT[:length] for length in range(300, 320)), TEXT) == []
    assert editor.close(uri) == []


def test_names_are_found_in_broken_text(editor: Editor) -> None:
    uri = "file:///broken.mlir"
    assert editor.open(uri, TEXT.replace("glow_high.mul %0, %w", "glow_high.mul(((%0, %w"))
    for use, definition in (
        (("yield %1, %0", "%0"), ("%0 = glow_high.add", "%0")),
        (("return %y", "%y"), ("high.if", "%y")),
    ):
        line, column = next((line, LINES[line].index(use[1])) for line, text in enumerate(LINES) if use[0] in text)
        wanted, at = next(
            (line, LINES[line].index(definition[1])) for line, text in enumerate(LINES) if definition[0] in text
        )
        assert start(editor.ask(types.TEXT_DOCUMENT_DEFINITION, uri, line, column + 1)) == (wanted, at)
    editor.close(uri)


def test_columns_are_counted_as_editors_do(editor: Editor) -> None:
    uri = "file:///letters.mlir"
    text = 'glow_high.func @"😀😀"(%é: tensor<f32>) -> tensor<f32> {\n  glow_high.return %é\n}\n'
    editor.open(uri, text)
    found = editor.ask(types.TEXT_DOCUMENT_DEFINITION, uri, 1, 20)
    assert start(found) == (0, text.index("%é") + 2)  # Each of the two takes two units of UTF-16.
    editor.close(uri)


def test_names_of_all_tests_resolve() -> None:
    unknown: list[str] = []
    for path in filecheck_tests():
        if path.suffix != ".mlir" or path.stem.endswith("invalid"):
            continue
        document = Document(path.read_text(encoding="utf-8"))
        for index in document.indexes:
            names = [item for item in index.tokens if item.kind in ("value", "block", "symbol")]
            unknown += [item.text for item in names if item.text not in QUALIFIERS and index.resolve(item) is None]
    # The names of tests about what is missing, and of code outside of programs.
    assert set(unknown) == {"%nowhere", "@nowhere", "@foo", '@"foo-x"', "@lapack_spotrf_ffi"}


def test_without_pygls_one_line_says_what_to_install(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['pygls'] = None; from glow_mlir.tools.glow_lsp import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    reason = "needs the package pygls, which is not installed"
    assert done.stderr == f"glow-lsp: error: {reason} (hint: pip install 'pygls>=2,<3')\n"


def frame(method: str, number: int | None = None, params: dict[str, Any] | None = None) -> bytes:
    """A message as it is sent."""
    known = {"jsonrpc": "2.0", "method": method, "id": number, "params": params}
    text = json.dumps({key: value for key, value in known.items() if value is not None}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


BEGIN = frame("initialize", 1, {"processId": None, "rootUri": None, "capabilities": {}}) + frame(
    "initialized", params={}
)


@pytest.mark.parametrize(
    ("end", "code"),
    [(frame("shutdown", 2) + frame("exit"), 0), (frame("exit"), 1), (frame("shutdown", 2), 0), (b"", 1)],
    ids=["shutdown and exit", "exit alone", "shutdown and the end", "the end alone"],
)
def test_exit_codes_are_those_of_the_protocol(end: bytes, code: int) -> None:
    command = [sys.executable, "-m", "glow_mlir.tools.glow_lsp"]
    done = subprocess.run(command, input=BEGIN + end, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, b"")
    assert b'"id": 1' in done.stdout or b'"id":1' in done.stdout


def test_an_editor_on_a_port_ends_it_with_success() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "glow_mlir.tools.glow_lsp", "--tcp", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            assert process.poll() is None
            time.sleep(0.05)
    with connection:
        connection.sendall(BEGIN + frame("shutdown", 2) + frame("exit"))
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, b"")
