"""The harness of fuzzers: every way in which a case can fail is told by its seed, and the others go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import fuzzing

def case(seed):
    if seed == 3:
        raise ValueError("three\\nlines")
    if seed == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 7:
        os._exit(9)
    if seed == 8:
        time.sleep(60)
    if seed == 9:
        try:
            bytearray(64 << 30)
        except MemoryError:
            raise MemoryError("too much") from None

fuzzing.SECONDS = 3
fuzzing.SEEDS_A_CHILD = 4
seen = []
for failure in fuzzing.fuzz(fuzzing.Fuzzer(case), range(20), 2, lambda done, failed: seen.append((done, failed))):
    print(failure.seed, failure.kind, failure.reason)
print(*seen[-1])
"""

EXPECTED = """\
3 ValueError <string>:8: three lines
5 SIGSEGV the process ended with -11
7 exit the process ended with 9
8 hang it takes more than 3 seconds
9 MemoryError <string>:19: too much
20 5
"""


def test_every_failure_is_told_by_its_seed() -> None:
    support = Path(__file__).parent / "support"
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(support)], capture_output=True, text=True, check=False)
    assert done.stdout == EXPECTED, done.stderr
