"""
Prompts and steps of a decoder in a GGUF file, beside llama.cpp, in turns: CPU time on one core, wall time on several.

    python benchmarks/generation.py model.gguf
    python benchmarks/generation.py model.gguf --target avx2
    python benchmarks/generation.py model.gguf --llama-python peers/bin/python --rounds 15 --threads 1 2

Each engine is a process of its own. A round asks them in turn for prompts of several lengths, and for one more token
behind several numbers of tokens. The least time of all rounds counts; what is printed is ours, theirs, and theirs over
ours. `--llama-python` has the package `llama-cpp-python`: its library must be built with `-O3` throughout
(`CMAKE_ARGS=-DCMAKE_CXX_FLAGS_RELEASE=-O3`), since a part of its kernels is C++.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contest.machine import add_core, cores_from, machine
from glow_mlir.options.generation import ACTIVATIONS
from glow_mlir.tools.arguments.bounded_numbers import count

PROMPTS, STEPS = (37, 512), (16, 512, 2048)

PAGE = 64

OURS = """
import json, sys, time
import numpy as np
from glow_mlir import InferenceSession
from glow_mlir.frontends.decoders.models import open_model
path, threads, bits, target = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] or None
clock = time.process_time if threads == 1 else time.perf_counter
model = open_model(path)
pages = -(-4096 // 64)
program = model.program(pages=pages, rows=512, outputs=4, sequences=4, left_bits=bits)
session = InferenceSession(program, dimensions=program.dimensions, threads=threads, target=target)
table = np.arange(pages)[None]
def call(number, start):
    inputs = {
        "tokens": np.arange(number) * 37 % 20000, "positions": np.arange(start, start + number),
        "sequences": np.zeros(number, np.int64), "table": table[:, : -(-(start + number) // 64)],
        "last": np.array([number - 1]),
    }
    begin = clock()
    session.run(None, inputs)
    return clock() - begin
"""

THEIRS = """
import json, os, sys, time
import numpy as np
import llama_cpp.llama_cpp as c
path, threads = sys.argv[1].encode(), int(sys.argv[2])
clock = time.process_time if threads == 1 else time.perf_counter
silent = c.llama_log_callback(lambda level, text, data: None)
c.llama_log_set(silent, None)
c.llama_backend_init()
model = c.llama_model_load_from_file(path, c.llama_model_default_params())
options = c.llama_context_default_params()
options.n_ctx, options.n_batch, options.n_ubatch = 4096, 512, 512
options.n_threads = options.n_threads_batch = threads
context = c.llama_init_from_model(model, options)
memory = c.llama_get_memory(context)
def call(number, start):
    c.llama_memory_seq_rm(memory, 0, start, -1)
    batch = c.llama_batch_init(number, 0, 1)
    batch.n_tokens = number
    for i in range(number):
        batch.token[i], batch.pos[i], batch.n_seq_id[i] = i * 37 % 20000, start + i, 1
        batch.seq_id[i][0], batch.logits[i] = 0, i == number - 1
    begin = clock()
    assert c.llama_decode(context, batch) == 0
    c.llama_get_logits_ith(context, number - 1)
    taken = clock() - begin
    c.llama_batch_free(batch)
    return taken
"""

SERVE = """
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    number, start = json.loads(line)
    print(json.dumps(call(number, start)), flush=True)
"""


class Engine:
    """A process that answers calls of a number of tokens behind others with its seconds."""

    def __init__(self, python: str, program: str, arguments: Sequence[str], cores: Sequence[int]) -> None:
        command = ["taskset", "-c", ",".join(map(str, cores)), python, "-c", program + SERVE, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def call(self, tokens: int, start: int) -> float:
        """The seconds of one call."""
        assert self._process.stdin is not None
        print(json.dumps([tokens, start]), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"an engine ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measured(engines: Mapping[str, Engine], rounds: int) -> dict[str, dict[str, float]]:
    """Name of a case → the least seconds of each engine."""
    # Longest first: llama.cpp keeps the keys in front of a step, and forgets those behind.
    cases = {f"step after {size}": (1, size) for size in sorted(STEPS, reverse=True)}
    cases |= {f"prompt of {size}": (size, 0) for size in PROMPTS}
    found: dict[str, dict[str, float]] = {name: {} for name in cases}
    for _ in range(rounds):
        for engine in engines.values():
            for start in range(0, max(STEPS), 512):
                engine.call(min(512, max(STEPS) - start), start)
        for name, (tokens, start) in cases.items():
            for engine, worker in engines.items():
                least = min(worker.call(tokens, start) for _ in range(1 if tokens > 1 else 5))
                found[name][engine] = min(least, found[name].get(engine, least))
    return found


def main() -> None:
    """Print a table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .gguf file")
    parser.add_argument("--llama-python", help="a Python that has llama-cpp-python")
    parser.add_argument("--activations", nargs="+", choices=ACTIVATIONS, default=["int15", "int8"])
    parser.add_argument("--rounds", type=count, default=9, help="rounds (9)")
    parser.add_argument("--threads", nargs="+", type=count, default=[1], help="threads, or several numbers of them (1)")
    parser.add_argument("--target", default="", help="compile ours for this target, such as avx2 (this machine)")
    add_core(parser, "the first core to run on")
    options = parser.parse_args()
    print(f"{Path(options.model).name} on {machine()}")
    for threads in options.threads:
        cores, ours = cores_from(options.core, threads), [options.model, str(threads)]
        engines = {
            name: Engine(sys.executable, OURS, [*ours, str(ACTIVATIONS[name]), options.target], cores)
            for name in options.activations
        }
        if options.llama_python is not None:
            engines["llama.cpp"] = Engine(options.llama_python, THEIRS, [options.model, str(threads)], cores)
        found = measured(engines, options.rounds)
        print(f"\n{threads} thread{'s, ms' if threads > 1 else ', ms of CPU'}\n\n| | {' | '.join(engines)} |")
        print("|---" * (1 + len(engines)) + "|")
        for name, times in found.items():
            theirs = times.get("llama.cpp")
            cells = [
                f"{each * 1e3:.2f}" + (f" ({theirs / each:.2f})" if theirs and engine != "llama.cpp" else "")
                for engine, each in times.items()
            ]
            print(f"| {name} | {' | '.join(cells)} |")
        for engine in engines.values():
            engine.close()


if __name__ == "__main__":
    main()
