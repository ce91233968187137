"""The figures as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from contest.engines import ENGINES, OURS, REFERENCE, STRICT
from contest.figures import Comparison, best_peer, geometric_mean
from contest.picture import picture_file
from contest.turns import Measurement, Result

ACCURATE = 1e-3
"""An accurate engine's largest difference, in units of the outputs' scale."""


@dataclass(frozen=True)
class Run:
    """What was measured, and where."""

    machine: str
    rounds: int
    measurements: list[Measurement]

    def as_data(self) -> dict[str, Any]:
        """Everything as JSON has it, with the comparisons."""
        return {
            "machine": self.machine,
            "rounds": self.rounds,
            "packages": {name: list(engine.packages) for name, engine in ENGINES.items()},
            "measurements": [
                {
                    **asdict(measurement),
                    "over_accurate": _data(compare(measurement, accurate=True)),
                    "over_every": _data(compare(measurement, accurate=False)),
                }
                for measurement in self.measurements
            ],
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Run:
        """What `as_data` was made of."""
        plain = {field.name for field in fields(Measurement)} - {"results"}
        measurements = [
            Measurement(
                **{name: value for name, value in one.items() if name in plain},
                results={name: Result(**result) for name, result in one["results"].items()},
            )
            for one in data["measurements"]
        ]
        return Run(data["machine"], data["rounds"], measurements)


def _data(comparison: Comparison | None) -> dict[str, Any] | None:
    return None if comparison is None else asdict(comparison)


def compare(measurement: Measurement, accurate: bool) -> Comparison | None:
    """Our times with those of the best peer, of the accurate ones or of all; None where there is nothing to compare."""
    timed = measurement.timed()
    ours, _ = timed.pop(OURS, None), timed.pop(STRICT, None)
    if ours is None:
        return None
    peers = {
        name: result.seconds
        for name, result in timed.items()
        if not accurate or (ENGINES[name].accurate and (result.difference or 0.0) <= ACCURATE)
    }
    return best_peer(ours.seconds, peers)


def title(name: str) -> str:
    """An engine's name in tables."""
    engine = ENGINES[name]
    return engine.title if engine.tuned else f"{engine.title} (untuned)"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _versus(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return ["–", "–"]
    ratio = comparison.ratio
    return [f"**{ratio.middle:.2f}** ({ratio.low:.2f} to {ratio.high:.2f})", ENGINES[comparison.peer].title]


def share_of_peak(measurement: Measurement, result: Result) -> float | None:
    """The part of the cores' peak that the products of a model reach, by rounds; None where it has no products."""
    if not measurement.flops or not result.seconds:
        return None
    return float(np.median([measurement.flops / seconds for seconds in result.seconds])) / measurement.peak


def ratio_table(measurements: Sequence[Measurement]) -> str:
    """Our time and share of the peak, and how many times as long the best peers take."""
    rows: list[list[str]] = []
    for measurement in measurements:
        ours = measurement.timed().get(OURS)
        time = "–" if ours is None else f"{np.median(ours.seconds) * 1e3:.2f}"
        share = None if ours is None else share_of_peak(measurement, ours)
        both = [cell for accurate in (True, False) for cell in _versus(compare(measurement, accurate))]
        rows.append([measurement.workload, time, "–" if share is None else f"{share:.0%}", *both])
    for_all = [
        [c.ratio.middle for measurement in measurements if (c := compare(measurement, accurate)) is not None]
        for accurate in (True, False)
    ]
    if all(for_all):
        accurate, every = (f"**{geometric_mean(values):.2f}**" for values in for_all)
        rows.append(["geometric mean", "", "", accurate, "", every, ""])
    head = [
        "model",
        "ours, ms",
        "of the peak",
        "over accurate peers",
        "best of them",
        "over every peer",
        "best of them",
    ]
    return table(head, rows)


def _time(measurement: Measurement, result: Result) -> str:
    share = share_of_peak(measurement, result)
    return f"{np.median(result.seconds) * 1e3:.2f}" + (f" ({share:.0%})" if share is not None else "")


def _load(_: Measurement, result: Result) -> str:
    return f"{result.load_seconds:.2f}" + (f" + {result.prepare_seconds:.1f}" if result.prepare_seconds > 0.1 else "")


def _memory(_: Measurement, result: Result) -> str:
    return f"{result.load_bytes / 1e6:.0f} / {result.run_bytes / 1e6:.0f}"


def _difference(_: Measurement, result: Result) -> str:
    return "–" if result.difference is None else f"{result.difference:.0e}"


DETAILS: dict[str, Callable[[Measurement, Result], str]] = {
    "Time of one inference, ms: the median of the rounds (in parentheses the share of the peak)": _time,
    "Seconds to load or compile, with the first inference (+ conversion to a file that is kept)": _load,
    "Largest resident memory of the process, MB: while loading / from then on": _memory,
    f"Largest difference to {ENGINES[REFERENCE].title}, in units of the outputs' largest magnitude": _difference,
}
"""Heading → the cell of an engine on a model."""


def details(measurements: Sequence[Measurement], cell: Callable[[Measurement, Result], str]) -> str:
    """A table of models and engines."""
    names = [name for name in ENGINES if any(name in measurement.results for measurement in measurements)]
    rows: list[list[str]] = []
    for measurement in measurements:
        timed = measurement.timed()
        cells = [cell(measurement, timed[name]) if name in timed else "–" for name in names]
        rows.append([measurement.workload, *cells])
    return table(["model", *map(title, names)], rows)


def failures(measurements: Sequence[Measurement]) -> str:
    """Who does not run what, and why; models that share a reason share a line."""
    models: dict[tuple[str, str], list[str]] = {}
    for measurement in measurements:
        for name, result in measurement.results.items():
            if result.reason:
                models.setdefault((name, result.reason), []).append(measurement.workload)
    lines = [f"- {title(name)}, {', '.join(where)}: {reason}" for (name, reason), where in models.items()]
    return "\n".join(lines) or "Every engine ran every model."


def section(measurements: Sequence[Measurement], name: str | None) -> str:
    """All tables of one number of threads, behind the picture of a page of that `name`, if there is one."""
    threads = measurements[0].threads
    heading = "One thread" if threads == 1 else f"{threads} threads"
    picture = [] if name is None else [f"![{heading}: over the best engine]({picture_file(name, heading)})"]
    parts = [f"## {heading}", *picture, ratio_table(measurements)]
    for heading, cell in DETAILS.items():
        parts += [f"### {heading}", details(measurements, cell)]
    parts += ["### What did not run", failures(measurements)]
    repeated = sum(measurement.repeated for measurement in measurements)
    probes = [probe / measurement.peak for measurement in measurements for probe in measurement.probes]
    peak = max(measurement.peak for measurement in measurements)
    parts.append(
        f"Peak: {peak / 1e9:.0f} GFLOP/s. Rounds measured again because of a disturbed probe: {repeated}; "
        f"worst probe of a round that counts: {min(probes, default=0.0):.0%} of the peak."
    )
    return "\n\n".join(parts)


HEAD = """# Against other engines

<!-- Generated by: python benchmarks/peers.py -->

Measured on {machine}: {rounds} rounds.

Every engine runs in a process of its own on the same cores, in turns within each round; a round takes the shortest of
several calls. Ratios are the peer's time over ours in the same round, above 1 where we are faster: the median of the
rounds, in parentheses the quartiles. The best peer is the one with the smallest median. The peak is what multiply-adds
on registers alone reach, probed between the turns; rounds with a disturbed probe are repeated. Engines that take ten
times as long as the fastest are in the first three rounds alone. 32-bit floats, weights
and inputs seeded; one example, or eight where the name ends in b8. *Strict* is ours with `accuracy="strict"`: without
Winograd's and Strassen's algorithms.

All peers run with their settings for latency, inputs and outputs in kept buffers where their API has that. *Accurate*
peers compute in 32-bit floats and differ by at most {accurate:.0e} of the outputs' scale; *every* peer adds MNN, whose
large Winograd tiles and approximate functions show in its outputs. *Untuned*: the default pipeline, without a search
for schedules. Convolutions, products of matrices and LSTMs count for the share of the peak, which algorithms with fewer
products may exceed.

{packages}
"""


def document(run: Run, name: str | None) -> str:
    """The whole of `docs/benchmarks.md`, whose pictures are in files that begin with `name`."""
    used = {name for measurement in run.measurements for name in measurement.results}
    packages = "Versions: " + "; ".join(
        ", ".join(engine.packages[:2] if name == "iree" else engine.packages[:1]).replace("==", " ")
        for name, engine in ENGINES.items()
        if name in used and engine.packages
    )
    parts = [HEAD.format(machine=run.machine, rounds=run.rounds, accurate=ACCURATE, packages=f"{packages}.")]
    for threads in sorted({measurement.threads for measurement in run.measurements}):
        parts.append(section([m for m in run.measurements if m.threads == threads], name) + "\n")
    return "\n".join(parts)
