"""Names of device functions in languages that have words of their own."""

from __future__ import annotations

import re


def kernel_name(function: str) -> str:
    """How a device function is called in a program of OpenCL C, apart from all words of that."""
    return "glow_" + re.sub(r"\W", "_", function, flags=re.ASCII)
