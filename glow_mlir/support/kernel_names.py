"""Names of device functions that avoid the keywords of other languages."""

from __future__ import annotations

import re


def kernel_name(function: str) -> str:
    """The name of a device function in OpenCL C, distinct from its keywords."""
    return "glow_" + re.sub(r"\W", "_", function, flags=re.ASCII)
