"""Pieces of a text are those between lines of `// -----`, each at its own lines."""

from __future__ import annotations

import pytest

from glow_mlir.tools.mlir_text.split_input import pieces, spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [""]),
        ("a\n", ["a\n"]),
        ("a\n// -----\nb\n", ["a\n", "\n\nb\n"]),
        ("a\n// ----- \t\r\nb", ["a\n", "\n\nb"]),
        ("// -----", ["", ""]),
        ("// -----\n// -----\n", ["", "\n", "\n\n"]),
        (" // -----\nx // -----\n// ------\n", [" // -----\nx // -----\n// ------\n"]),
    ],
)
def test_pieces_keep_their_lines(text: str, expected: list[str]) -> None:
    assert list(pieces(text)) == expected
    assert [text[begin:end] for begin, end in spans(text)] == [piece.lstrip("\n") for piece in expected]
