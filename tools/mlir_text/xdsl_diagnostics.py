"""`--xdsl-diagnostics`: errors in the words of xDSL's `xdsl-opt`, which FileCheck tests of its dialects compare."""

from __future__ import annotations

from xdsl.utils.exceptions import DiagnosticException, ParseError

from glow_mlir.errors import GlowError


def words_of_xdsl(error: GlowError) -> str:
    """What `xdsl-opt` prints of an error, with a newline behind it; empty for one that xDSL knows nothing of."""
    found: BaseException | None = error
    while found is not None and (
        isinstance(found, GlowError) or not isinstance(found, ParseError | DiagnosticException)
    ):
        found = found.__cause__
    return "" if found is None else "\n".join([str(found), *getattr(found, "__notes__", ())]) + "\n"
