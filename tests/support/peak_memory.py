"""A process that runs a model, and prints the most memory it had resident and the bytes of the packed constants."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from glow_mlir import InferenceSession


def main() -> None:
    """Run the model in the file of the first argument on zeros; the second says whether to use the cache."""
    session = InferenceSession(sys.argv[1], cache=sys.argv[2] == "cached")
    session.run(None, {argument.name: np.zeros(argument.shape, np.float32) for argument in session.get_inputs()})
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    print(peak, session.machine_code.manifest.constants)


if __name__ == "__main__":
    main()
