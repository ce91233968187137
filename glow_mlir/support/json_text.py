"""Reading of JSON that may be damaged."""

from __future__ import annotations

import json
from typing import Any


def parsed_json(text: str | bytes) -> Any:
    """The value in a JSON text; raises `ValueError` for anything else, also for what is nested too deep to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("the text is nested too deep") from error
