"""
PyTorch's own database of operators and their sample inputs, run by the backend of `torch.compile` and by PyTorch.

`python tests/operator_database.py [--backend cpu] [--most 4] [NAME…]` tells what becomes of each operator, and ends
with 1 if results are wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from operator_outcomes import WITH_GRADIENTS, Extent, entries, name_of, outcomes, reasons, verdict


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("names", nargs="*")
    found.add_argument("--backend", default="interpreter")
    found.add_argument("--most", type=int, default=None, help="samples of each operator and element type")
    found.add_argument("--seconds", type=float, default=None, help="how long these may take")
    found.add_argument("--shard", default="0/1", help="which of how many parts of the list")
    found.add_argument("--reference", action="store_true", help="samples with infinities, NaN and other extremes too")
    found.add_argument("--no-gradients", action="store_true")
    return found


def main() -> int:
    """Print a line for each operator, one for each reason why samples did not pass, and a summary."""
    warnings.simplefilter("ignore")
    given = parser().parse_args()
    gradients = () if given.no_gradients else WITH_GRADIENTS
    extent = Extent(given.backend, given.most, given.seconds, gradients, given.reference)
    part, count = map(int, given.shard.split("/"))
    total: Counter[str] = Counter()
    for op in entries(given.names)[part::count]:
        found = outcomes(op, extent)
        word = verdict(found)
        total[word] += 1
        print(f"{word} {name_of(op)}: {sum(item.passed for item in found.values())} samples", flush=True)
        for line in reasons(found):
            print(f"    {line}", flush=True)
    print(dict(total))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
