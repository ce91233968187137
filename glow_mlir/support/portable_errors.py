"""Errors in a form that can be sent to another process."""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress

from glow_mlir.errors import ExecutionError, GlowError


def portable(error: Exception) -> Exception:
    """A user error itself, or any other error as text."""
    with suppress(Exception):
        if isinstance(error, GlowError) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    return ExecutionError("".join(traceback.format_exception(error)))
