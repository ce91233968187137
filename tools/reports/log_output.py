"""`--compilation-log`: the effects of each pass on the operators of each node, as text or JSON."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from glow_mlir.errors import OptionError
from glow_mlir.tools.command_line import ArgumentGroup

if TYPE_CHECKING:
    from glow_mlir.driver.compilation_log import CompilationLog

STDOUT = "-"
JSON_SUFFIX = ".json"


def add_log_arguments(group: ArgumentGroup | argparse.ArgumentParser, stream: str) -> None:
    """Add `--compilation-log` and `--log-nodes`; `stream` is the name of the stream for `-`."""
    group.add_argument(
        "--compilation-log",
        metavar="FILE",
        help="write which pass created, changed, merged or removed the operators of each node of the model, as JSON if "
        f"FILE ends with {JSON_SUFFIX}; - is {stream}",
    )
    group.add_argument(
        "--log-nodes",
        metavar="PATTERN",
        help="the nodes in the log, as a pattern with * and ? (default: all)",
    )


def wanted_log(args: Namespace) -> CompilationLog | None:
    """The log to fill, if requested; raises `OptionError` for log nodes without a log."""
    if args.compilation_log is None:
        if args.log_nodes is not None:
            raise OptionError("--log-nodes needs --compilation-log")
        return None
    from glow_mlir.driver.compilation_log import CompilationLog

    return CompilationLog()


def write_log(log: CompilationLog, args: Namespace, stream: IO[str] | None = None) -> None:
    """Write a log to the requested file; `-` is `stream`, by default stdout."""
    from glow_mlir.ir.text import write_text

    target: str = args.compilation_log
    pattern: str = args.log_nodes or "*"
    text = log.json(pattern) if target.endswith(JSON_SUFFIX) else log.text(pattern)
    if target == STDOUT:
        print(text, end="", file=stream or sys.stdout)
    else:
        write_text(text, Path(target))
