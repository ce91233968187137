"""`--xdsl-diagnostics`: print errors as xDSL's `xdsl-opt` does, for FileCheck tests of its dialects."""

from __future__ import annotations

from xdsl.utils.exceptions import DiagnosticException, ParseError

from glow_mlir.errors import GlowError


def words_of_xdsl(error: GlowError) -> str:
    """
    The text that `xdsl-opt` prints for an error, with a final newline; empty for an error that xDSL does not have.
    """
    found: BaseException | None = error
    while found is not None and (
        isinstance(found, GlowError) or not isinstance(found, ParseError | DiagnosticException)
    ):
        found = found.__cause__
    return "" if found is None else "\n".join([str(found), *getattr(found, "__notes__", ())]) + "\n"
