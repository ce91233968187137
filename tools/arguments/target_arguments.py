"""`--target`: the machine to compile for, and the list of named machines."""

from __future__ import annotations

import argparse
from typing import Any

from glow_mlir.tools.arguments.repeated_options import Once
from glow_mlir.tools.command_line import ArgumentGroup

LIST = "list"
"""The value of `--target` that prints the list."""


def add_target_argument(
    group: ArgumentGroup | argparse.ArgumentParser,
    what: str = "the machine to compile for",
    *,
    dest: str = "target",
    default: str = "that of the module, else host",
) -> None:
    """Add `--target`, which takes a machine; `list` prints the named machines, and exits."""
    group.add_argument(
        "--target",
        dest=dest,
        action=TargetAction,
        metavar="NAME[,FIELD=VALUE...]",
        help=f"{what}: host, avx2, cortex-m4, … ({LIST} prints them), with other values for some fields, as in "
        f"avx2,vector_bits=128 (default: {default})",
    )


class TargetAction(Once):
    """Store the text of a target, or print the list of targets and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if values == LIST:
            print(target_list())
            parser.exit()
        super().__call__(parser, namespace, values, option)


def target_list() -> str:
    """The text of `--target list`: for each machine its description, LLVM target, vectors and pointers."""
    from glow_mlir.backends.interface import get_backend
    from glow_mlir.ir.registry import BACKENDS
    from glow_mlir.tools.reports.tables import Alignment, plain_table

    titles = ("name", "machine", "vectors", "pointers", "processor", "features")
    columns: dict[str, Alignment] = dict.fromkeys(titles, "left")
    tables: list[str] = []
    for of in sorted(BACKENDS.all()):
        backend = get_backend(of)
        about = backend.about_targets()
        rows = [
            (
                name,
                about.get(name, ""),
                f"{target.vector_bits} bits" if target.vector_bits else "none",
                f"{target.pointer_bits} bits",
                target.cpu,
                target.features,
            )
            for name, target in backend.targets().items()
        ]
        if rows:
            tables.append(plain_table(f"targets of the backend '{of}', beside host:", columns, rows))
    return "\n".join(tables)
