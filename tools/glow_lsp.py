"""`glow-lsp`: a language server for `.mlir` files with our dialects, for any editor that speaks LSP."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from glow_mlir.errors import OptionError
from glow_mlir.support.optional_packages import imported
from glow_mlir.tools.command_line import EXIT_ERROR, EXIT_OK, new_parser, run_tool

if TYPE_CHECKING:
    from glow_mlir.tools.lsp.server import GlowLanguageServer

PROGRAM = "glow-lsp"
DESCRIPTION = (
    "Serve editors over stdin and stdout: errors while one types, documentation of operations, types of values, "
    "definitions, references, outlines and completion in .mlir files."
)
EXAMPLES = """
glow-lsp                     # as editors start it: docs/editors.md
glow-lsp --tcp 127.0.0.1:2087
"""


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    parser = new_parser(PROGRAM, DESCRIPTION, EXAMPLES)
    parser.add_argument("--stdio", action="store_true", help="talk over stdin and stdout, which is the default")
    parser.add_argument("--tcp", metavar="HOST:PORT", help="wait for one editor on a port instead")
    args = parser.parse_args(arguments)
    imported("pygls", "lsp", "needs the package pygls")
    from glow_mlir.tools.lsp.server import new_server

    server = new_server()
    if args.tcp is None:
        # A copy: pygls closes the stream when the editor sends `exit`.
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:
            server.start_io(stdout=stdout)
        return _exit_code(server)
    host, _, port = args.tcp.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise OptionError(f"--tcp: expected HOST:PORT, got '{args.tcp}'")
    logging.getLogger("asyncio").addFilter(_is_no_exit)
    try:
        server.start_tcp(host, int(port))
    except OSError as error:
        raise OptionError(f"--tcp: cannot listen at {args.tcp}: {error.strerror}") from error
    return _exit_code(server)


def _is_no_exit(record: logging.LogRecord) -> bool:
    """Whether to keep a log record of asyncio: an editor's `exit` over TCP ends the process inside a task."""
    return record.exc_info is None or not isinstance(record.exc_info[1], SystemExit)


def _exit_code(server: GlowLanguageServer) -> int:
    """The exit code that the protocol requires: success if the editor sent `shutdown` before it left."""
    return EXIT_OK if server.is_shut_down else EXIT_ERROR


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-lsp`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
