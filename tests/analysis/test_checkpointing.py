"""Plans for chains: as little work as exhaustive search finds, and no more memory than was given."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from breadth import examples

from glow_mlir.analysis.checkpointing import UNITS, Action, Plan, Plans, Stage

CHAINS = examples(60)


def random_chain(seed: int) -> list[Stage]:
    """Up to five stages."""
    draw = random.Random(seed)
    stages: list[Stage] = []
    for _ in range(draw.randint(1, 5)):
        output = draw.randint(1, 30)
        saved = output + draw.randint(0, 60)
        stages.append(
            Stage(draw.randint(1, 20), output, saved, draw.randint(0, 20), draw.randint(0, 40), draw.randint(0, 10))
        )
    return stages


def plans(first: int, last: int) -> Iterator[Plan]:
    """All plans for a part of a chain that keep what they save until the way back has passed it."""
    behind = [()] if first == last else plans(first + 1, last)
    for rest in behind:
        yield (Action.SAVE, first), *rest, (Action.BACK, first)
    for second in range(first + 1, last + 1):
        passing = tuple((Action.PASS, number) for number in range(first, second))
        for later in plans(second, last):
            for earlier in plans(first, second - 1):
                yield *passing, *later, *earlier


def cost(stages: Sequence[Stage], plan: Plan) -> tuple[float, int]:
    """The work of a plan, and the memory that it takes, where each value lives until it was read last."""
    sizes: list[int] = []
    lives: list[tuple[int, int]] = []
    current: dict[int, int] = {}
    for place, (action, number) in enumerate(plan):
        for read in [number - 1, number] if action is Action.BACK else [number - 1]:
            if read in current:
                lives[current[read]] = (lives[current[read]][0], place)
        if action is not Action.BACK:
            current[number] = len(sizes)
            sizes.append(stages[number].saved if action is Action.SAVE else stages[number].output)
            lives.append((place, place))
    most, work = 0, 0.0
    for place, (action, number) in enumerate(plan):
        live = sum(size for size, (first, last) in zip(sizes, lives, strict=True) if first <= place <= last)
        if action is Action.BACK:
            most = max(most, live + stages[number].backward)
        else:
            turned = next(other for later, other in plan[place:] if later is Action.BACK)
            most = max(most, live + stages[number].forward + stages[turned].arriving)
            work += stages[number].work
    return work, most


@pytest.mark.parametrize("seed", range(CHAINS))
def test_plans_have_least_work(seed: int) -> None:
    stages = random_chain(seed)
    memory = UNITS  # Sizes are whole units then.
    tried = [cost(stages, plan) for plan in plans(0, len(stages) - 1)]
    found = Plans(stages, memory)
    for limit in sorted({most for _, most in tried if most <= memory}):
        plan = found.within(limit)
        assert plan is not None
        work, most = cost(stages, plan)
        assert work == min(work for work, most in tried if most <= limit)
        assert most <= limit
    least = min(most for _, most in tried)
    assert found.within(least - 1) is None
