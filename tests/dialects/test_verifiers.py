"""What verifiers refuse, with the whole message: the rows of the files below `verifiers`, a file for each part."""

from __future__ import annotations

from pathlib import Path

import pytest
from verifier_cases import RowError, rows_of

FILES = sorted((Path(__file__).parent / "verifiers").glob("*/*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_verifiers_refuse(path: Path) -> None:
    faults = [fault for row in rows_of(path) if (fault := row.fault())]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("abs(2x3xf32) -> 3x2xf32 | wrong", "line 2: result has type tensor<3x2xf32>, but tensor<2x3xf32> follows"),
        ("abs(2x3xf32) -> 3x2xf32 | result has type", "line 2: result has type tensor<3x2xf32>"),
        ("abs(2x3xf32) -> 2x3xf32 | wrong", "nothing"),
        ("func @f(%x: tensor<2xf32>) {\n  %0 = } | wrong", "line 1: "),
    ],
)
def test_a_wrong_row_is_found(row: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "glow_high" / "some.txt"
    path.parent.mkdir()
    path.write_text(f"// Some.\n\n{row}\n", encoding="utf-8")
    (found,) = rows_of(path)
    assert f"found:    {fault}" in found.fault()
    assert found.fault().startswith("glow_high/some.txt:3: ")


def test_a_row_without_a_message_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("abs(2xf32) -> 2xf32\n", encoding="utf-8")
    with pytest.raises(RowError, match=r"some.txt:1: a row is an operation, '\|' and a message"):
        list(rows_of(path))
