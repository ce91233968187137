"""`python -m tosa_backend MODEL.onnx`: a model as a `.tosa` file, and what it costs on an NPU."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from glow_mlir import Quantization
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import quantizing
from glow_mlir.errors import GlowError
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.options.declaration import parameters
from tosa_backend.backend import TosaBackend
from tosa_backend.device import TosaFunction
from tosa_backend.vela import ACCELERATOR, estimate


def compiled(model: str, dimensions: Mapping[str, int], profile: str | None) -> TosaFunction:
    """The program of an ONNX model, which a profile quantizes."""
    pipeline = TosaBackend().pipeline()
    if profile is not None:
        pipeline = quantizing(pipeline, parameters(Quantization(profile)))
    module = import_model(model, dimensions=dimensions)
    (function,) = Compilation(module, TosaBackend.name, pipeline=pipeline).artifact().functions
    return function


def _bound(text: str) -> tuple[str, int]:
    """A dimension and its size, of `NAME=SIZE`."""
    name, _, size = text.partition("=")
    return name, int(size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; mistakes are one line."""
    parser = argparse.ArgumentParser(prog="python -m tosa_backend", description=__doc__)
    parser.add_argument("model", help="an .onnx file")
    parser.add_argument("--bind", metavar="NAME=SIZE", type=_bound, action="append", default=[], help="a size")
    parser.add_argument("--load-profile", metavar="FILE", help="quantize to codes of 8 bits, as glow-run does")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="where to write the flatbuffer")
    parser.add_argument("--accelerator", default=ACCELERATOR, help=f"as vela calls it (default: {ACCELERATOR})")
    parser.add_argument("--no-estimate", action="store_true", help="write the file alone")
    args = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(args.output_file or Path(folder, "program.tosa"))
            compiled(args.model, dict(args.bind), args.load_profile).write(file)
            if not args.no_estimate:
                print(estimate(file, args.accelerator))
    except GlowError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
