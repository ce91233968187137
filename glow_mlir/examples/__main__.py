"""`python -m glow_mlir.examples`: writes a model that comes with the package into the current folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from glow_mlir.errors import OptionError
from glow_mlir.examples import EXAMPLES, example
from glow_mlir.support.files import replaced
from glow_mlir.tools.command_line import EXIT_OK, new_parser, run_tool

PROGRAM = "python -m glow_mlir.examples"
DESCRIPTION = "Write a model that comes with the package into a file; without a name, list what there is."
USES = """
python -m glow_mlir.examples
python -m glow_mlir.examples digits.onnx
python -m glow_mlir.examples digits.onnx -o models/network.onnx
"""


def main(arguments: Sequence[str]) -> int:
    """List the examples, or write one; an existing file is replaced."""
    parser = new_parser(PROGRAM, DESCRIPTION, USES)
    parser.add_argument("name", nargs="?", choices=sorted(EXAMPLES), help="which model")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="where to write it (default: its name)")
    args = parser.parse_args(arguments)
    if args.name is None:
        if args.output_file is not None:
            raise OptionError("--output-file takes the name of an example", hint=f"{PROGRAM} lists them")
        for name, text in EXAMPLES.items():
            print(f"{name}  {text}")
        return EXIT_OK
    with replaced(Path(args.output_file or args.name)) as file:
        file.write(example(args.name))
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(run_tool(PROGRAM, main, None))
