"""A process with little memory that runs models, and prints the error of each in a line: its class, and its text."""

from __future__ import annotations

import resource
import sys

import numpy as np

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError

LIMIT = 3 << 30


def main() -> None:
    """Run each model on ones, on the backend that the first argument names; the others are files with models."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    for path in sys.argv[2:]:
        try:
            session = InferenceSession(path, backend=sys.argv[1], cache=False)
            session.run(None, {arg.name: np.ones(arg.shape, np.float32) for arg in session.get_inputs()})
            print("ran")
        except GlowError as error:
            print(type(error).__name__, error)


if __name__ == "__main__":
    main()
