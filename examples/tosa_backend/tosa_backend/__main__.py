"""`python -m tosa_backend MODEL.onnx`: a model as a `.tosa` file, and what it costs on an NPU."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model
from tosa_backend.device import TosaFunction
from tosa_backend.vela import ACCELERATOR, estimate


def compiled(model: str) -> TosaFunction:
    """The program of an ONNX model."""
    (function,) = Compilation(import_model(model), "tosa").artifact().functions
    return function


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; mistakes are one line."""
    parser = argparse.ArgumentParser(prog="python -m tosa_backend", description=__doc__)
    parser.add_argument("model", help="an .onnx file")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="where to write the flatbuffer")
    parser.add_argument("--accelerator", default=ACCELERATOR, help=f"as vela calls it (default: {ACCELERATOR})")
    parser.add_argument("--no-estimate", action="store_true", help="write the file alone")
    args = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(args.output_file or Path(folder, "program.tosa"))
            compiled(args.model).write(file)
            if not args.no_estimate:
                print(estimate(file, args.accelerator))
    except GlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
