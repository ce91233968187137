"""Errors that another process is told."""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress

from glow_mlir.errors import ExecutionError, GlowError


def portable(error: Exception) -> Exception:
    """An error as another process gets it: itself, where it is a mistake of the user's, or else in words."""
    with suppress(Exception):
        if isinstance(error, GlowError) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    return ExecutionError("".join(traceback.format_exception(error)))
