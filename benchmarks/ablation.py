"""
What each optimization is worth: models compiled with everything on, and with one optimization off, side by side.

    python benchmarks/ablation.py --write docs/ablation.md

Each round times all variants of a model one right after the other, on one core, with a fresh input each; the ratios are
those to everything on in the same round. Outputs of all variants are compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from models import model_named, random_inputs

from contest.machine import add_core, machine, stay_on
from glow_mlir import InferenceSession
from glow_mlir.analysis.cost import bytes_moved
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.driver.pipelines import Pipeline, Stage
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.text import write_text
from glow_mlir.tools.arguments.bounded_numbers import count

MODELS = ("resnet50", "mobilenet_v2", "densenet121", "bert_encoder")

VARIANTS: dict[str, Callable[[Pipeline], Pipeline]] = {
    "everything on": lambda p: p,
    "no stacking": lambda p: p.replace("stack", "stack{members=1}").without("fuse-epilogues", "fuse-prologues"),
    "no sinking": lambda p: p.without("sink-transposes"),
    "no batch-norm folding": lambda p: p.without("fold-into-weights"),
    "no views": lambda p: p.without("eliminate-copies"),
    "no sharing": lambda p: p.without("share-buffers"),
    "no scheduling": lambda p: p.without("schedule"),
}
"""Name → what it makes of the pipeline of the CPU backend."""

TOLERANCE = 1e-3
"""Largest difference between variants, in units of the outputs' largest magnitude: they round differently."""


@dataclass
class Variant:
    """One compiled variant of a model, and its figures."""

    name: str
    session: InferenceSession
    arena: int
    moved: int
    instructions: int
    milliseconds: list[float] = field(default_factory=list[float])


def compiled(name: str, model: onnx.ModelProto, pipeline: Pipeline) -> Variant:
    """Compile a model with a pipeline."""
    modules: list[ModuleOp] = []

    def keep(stage: Stage, module: ModuleOp, _: float) -> None:
        if stage.name == "allocated":
            modules.append(module.clone())

    session = InferenceSession(model, cache=False, pipeline=pipeline, observers=[keep])
    (function,) = low_functions(modules[0])
    instructions = [op for op in function.block.ops if isinstance(op, Instruction) and not isinstance(op, DeallocOp)]
    arena = function.properties["activations"]
    assert isinstance(arena, IntegerAttr)
    return Variant(name, session, arena.value.data, sum(map(bytes_moved, instructions)), len(instructions))


def measure(model_name: str, rounds: int) -> list[Variant]:
    """Compile and time all variants of a model."""
    model = model_named(model_name)
    base = get_backend("cpu").pipeline()
    variants: list[Variant] = []
    for name, change in VARIANTS.items():
        print(f"{model_name}: compiling with {name}", file=sys.stderr)
        variants.append(compiled(name, model, change(base)))
    rng = np.random.default_rng(0)
    for number in range(rounds + 1):
        print(f"\r{model_name}: round {number}/{rounds}", end="", file=sys.stderr)
        inputs = random_inputs(model, rng)
        reference = variants[0].session.run(None, inputs)
        # The first of a round finds other caches than the last: the order turns.
        first = number % len(variants)
        for variant in (*variants[first:], *variants[:first]):
            start = time.perf_counter()
            outputs = variant.session.run(None, inputs)
            elapsed = (time.perf_counter() - start) * 1e3
            if number:  # The first round warms up.
                variant.milliseconds.append(elapsed)
            check(model_name, variant.name, outputs, reference)
    print(file=sys.stderr)
    return variants


def check(model: str, variant: str, outputs: list[np.ndarray], reference: list[np.ndarray]) -> None:
    """Exit where a variant computes something else."""
    for found, wanted in zip(outputs, reference, strict=True):
        scale = float(np.abs(wanted).max()) or 1.0
        difference = float(np.abs(found.astype(np.float64) - wanted).max()) / scale
        if not difference <= TOLERANCE:
            sys.exit(f"{model}, {variant}: outputs differ by {difference:.1e} of their scale")


def table(model: str, variants: list[Variant]) -> str:
    """The figures of one model in Markdown."""
    first = np.array(variants[0].milliseconds)
    lines = [
        f"### {model}",
        "",
        "| variant | time, ms (minimum) | time, ratio (median) | arena, bytes | bytes moved | instructions |",
        "|---|---|---|---|---|---|",
    ]
    for variant in variants:
        times = np.array(variant.milliseconds)
        lines.append(
            f"| {variant.name} | {times.min():.2f} | {np.median(times / first):.2f} "
            f"| {variant.arena:,} | {variant.moved:,} | {variant.instructions} |"
        )
    return "\n".join(lines)


HEAD = """# What each optimization is worth

Made by `python benchmarks/ablation.py --write docs/ablation.md`: {rounds} rounds, one core of {machine}.
Each row leaves one optimization out. Ratios are to everything on, in the same round. *Bytes moved* counts each element
of each operand of each instruction once, as `glow_mlir/analysis/cost.py` does; scratch buffers count as written and
read.
"""


def main() -> None:
    """Parse arguments, measure, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="models of tests/support/models.py")
    parser.add_argument("--rounds", type=count, default=15, help="rounds of timing")
    add_core(parser)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables to FILE as well")
    arguments = parser.parse_args()
    stay_on([arguments.core])
    tables = [table(name, measure(name, arguments.rounds)) for name in arguments.models]
    text = "\n\n".join(tables) + "\n"
    print(text)
    if arguments.write:
        write_text(HEAD.format(rounds=arguments.rounds, machine=machine()) + "\n" + text, arguments.write)


if __name__ == "__main__":
    main()
