"""Files are written as a whole or not at all; devices, pipes and links stay what they are."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from glow_mlir.constants.weights import add_weights
from glow_mlir.errors import OptionError
from glow_mlir.ir.text import write_text
from glow_mlir.support.files import replaced
from glow_mlir.tools.reports.run_report import write_arrays

ARRAYS = {"a/b": np.arange(20, dtype=np.float32), "c": np.zeros((2, 3), np.int64)}


def write_everything(path: Path) -> None:
    """Write to a path in every way there is."""
    write_text("text\n", path)
    write_text("text\n", path, [add_weights(np.arange(100, dtype=np.float32))])
    write_arrays(ARRAYS, path)


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for path in (Path("/dev/null"), link):
        write_everything(path)
        assert path.is_char_device()
    assert link.is_symlink()
    assert list(tmp_path.iterdir()) == [link]


@pytest.mark.parametrize("kind", ["text", "arrays"])
def test_a_pipe_gets_what_a_file_gets(kind: str, tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    if kind == "text":
        write_text("text\n", pipe)
        assert (reader.join(), received) == (None, [b"text\n"])
    else:
        write_arrays(ARRAYS, pipe)
        reader.join()
        file.write_bytes(received[0])
        with np.load(file) as found:
            assert {name: array.tolist() for name, array in found.items()} == {
                name: array.tolist() for name, array in ARRAYS.items()
            }
    assert pipe.is_fifo()


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, file = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to(file)
    for content in ("one\n", "two\n"):  # The first time, the link leads nowhere.
        write_text(content, link)
        assert link.is_symlink()
        assert file.read_text() == content
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OptionError, match="link: cannot be written: Too many levels of symbolic links"):
        write_text("text\n", link)
    assert link.is_symlink()


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text("one\n", path)
    path.chmod(0o600)
    write_text("two\n", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def run_out_of_space(path: Path) -> None:
    with replaced(path) as file:
        file.write(b"tw")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text("one\n", path)
    with pytest.raises(OptionError, match="file: cannot be written: No space left on device"):
        run_out_of_space(path)
    assert path.read_text() == "one\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_device_is_an_error() -> None:
    full = Path("/dev/full")
    with pytest.raises(OptionError, match="/dev/full: cannot be written: No space left on device"):
        write_text("text\n", full)
    with pytest.raises(OptionError, match="/dev/full: cannot be written: No space left on device"):
        write_arrays(ARRAYS, full)
