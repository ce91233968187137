"""
The process that compiles the forms for targets: `python -m contest.objects FOLDER TARGET... < names`.

The version of the compiler is the one that `PYTHONPATH` names. Each object file goes to `FOLDER/TARGET/NAME.o`, or the
reason why there is none to `NAME.txt`; `NAME.onnx` is the model, and `NAME.npz` its inputs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from contest.forms import Form, forms
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model


def file_name(form: str) -> str:
    """What the files of a form are called."""
    return re.sub(r"[^\w]+", "-", form)


def write_object(form: Form, target: str, folder: Path) -> None:
    """Compile a form, and put the object, or the reason why there is none, below `folder`."""
    place = folder / target / file_name(form.name)
    try:
        module = import_model(form.model(), form.bounds())
        code = Compilation(module, target=target).artifact().code
    except GlowError as error:
        place.with_suffix(".txt").write_text(str(error))
    else:
        place.with_suffix(".o").write_bytes(b"".join(code))


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
