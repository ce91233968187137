"""
The process that compiles the forms for targets: `python -m contest.objects FOLDER TARGET... < names`.

The version of the compiler is the one that `PYTHONPATH` names. Each object file goes to `FOLDER/TARGET/NAME.o`, or the
reason why there is none to `NAME.txt`; `NAME.onnx` is the model, and `NAME.npz` its inputs.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np

from contest.forms import Form, forms
from glow_mlir.tools import glow_compile


def file_name(form: str) -> str:
    """What the files of a form are called."""
    return re.sub(r"[^\w]+", "-", form)


def write_object(form: Form, target: str, folder: Path) -> None:
    """Compile the model of a form that is in `folder`, and put the object below it."""
    name = file_name(form.name)
    place, words = folder / target, io.StringIO()
    with tempfile.TemporaryDirectory() as bundle:
        # The name is part of the object, as that of the model's file would be.
        arguments = [str(folder / f"{name}.onnx"), "-o", bundle, "--name", "form", "--target", target, *form.bounds()]
        # Code has the checksum by which a bundle knows its weights, which is also that of what describes them.
        same = patch("zlib.crc32", return_value=1)
        with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words), same:
            code = glow_compile.main(arguments)
        if code:
            (place / f"{name}.txt").write_text(words.getvalue())
        else:
            shutil.copyfile(Path(bundle) / "form.o", place / f"{name}.o")


def main(arguments: Sequence[str]) -> None:
    """Compile the forms whose names standard input has, a line each."""
    folder, targets = Path(arguments[0]), arguments[1:]
    wanted = set(sys.stdin.read().splitlines())
    for target in targets:
        (folder / target).mkdir(parents=True, exist_ok=True)
    for form in forms():
        if form.name in wanted:
            (folder / f"{file_name(form.name)}.onnx").write_bytes(form.model().SerializeToString(deterministic=True))
            np.savez(folder / f"{file_name(form.name)}.npz", allow_pickle=False, **form.feeds())
            for target in targets:
                write_object(form, target, folder)
            print(form.name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
