"""Random graphs of steps and buffers."""

from __future__ import annotations

import random
from dataclasses import replace

from glow_mlir.analysis.program import Program, ScheduledStep


def random_program(seed: int, count: int, sharing: bool) -> Program:
    """
    Steps that each make a tensor of up to 100 bytes from up to three of the tensors before.

    With `sharing`, some compute in place, some write into the buffer of a later step, and some take no memory.
    """
    draw = random.Random(seed)
    reach = draw.choice([3, 6, count])
    steps: list[ScheduledStep] = []
    sizes = [draw.randint(1, 100) for _ in range(count)]
    for number in range(count):
        candidates = range(max(0, number - reach), number)
        operands = tuple(draw.sample(candidates, min(len(candidates), draw.choice([0, 1, 1, 1, 2, 2, 3]))))
        steps.append(ScheduledStep(before=operands, writes=(number,), reads=operands, result_bytes=sizes[number]))
    return shared(Program(steps, sizes), draw) if sharing else Program(steps, sizes)


def shared(program: Program, draw: random.Random) -> Program:
    """The program with steps that compute in place, write into each other's buffers, or take no memory."""
    host = list(range(len(program.steps)))
    sizes = list(program.sizes)
    for number, step in enumerate(program.steps):
        kind = draw.choice(["own", "own", "own", "host", "free"])
        if kind == "free":
            sizes[number] = 0
        elif kind == "host" and step.before:
            for part in step.before[:2]:
                host[part] = number if host[part] == part else host[part]
            sizes[number] = max(sizes[number], *(sizes[part] for part in step.before))
    for number in reversed(range(len(host))):
        host[number] = host[host[number]]
    steps = [
        replace(
            step,
            writes=(host[number],),
            reads=tuple(dict.fromkeys(host[operand] for operand in step.reads)),
            shares=tuple(
                (host[number], host[o]) for o in step.reads if draw.random() < 0.5 and host[o] != host[number]
            ),
        )
        for number, step in enumerate(program.steps)
    ]
    return Program(steps, sizes)
