"""
Time of whole models against other engines: in turns in one run, each engine in a process and an environment of its own.

    python benchmarks/peers.py --write docs/benchmarks.md --json result.json
    python benchmarks/peers.py --models my_network.tflite --engines litert
    python benchmarks/peers.py --models my_network.onnx --engines onnxruntime openvino --rounds 15 --threads 1 2

The first call installs the peers below `--folder`, converts the models, and takes some minutes for it. An engine that
cannot be installed, or cannot run a model, is named in the report with the reason.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from contest.engines import ENGINES, ONNX_FILE, OURS, REFERENCES, TFLITE_FILE
from contest.environments import FOLDER, EnvironmentFailure, environment
from contest.machine import add_core, cores_from, machine
from contest.picture import pictures_of
from contest.probe import Probe
from contest.report import Run, document
from contest.turns import Measurement, Settings, Turns
from contest.workloads import WORKLOADS, NotAWorkload, names_of, short_name, write_workload
from glow_mlir.ir.text import write_text
from glow_mlir.tools.arguments.bounded_numbers import count, seconds


def pythons(names: Sequence[str], folder: Path) -> dict[str, Path | str]:
    """Each engine's Python, or why there is none."""
    found: dict[str, Path | str] = {}
    for name in names:
        packages = ENGINES[name].packages
        try:
            found[name] = environment(name, packages, folder) if packages else Path(sys.executable)
        except EnvironmentFailure as failure:
            found[name] = f"cannot be installed: {failure}"
            print(f"{name} {found[name]}", file=sys.stderr)
    return found


def arguments_from(command: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models",
        nargs="+",
        default=list(WORKLOADS),
        metavar="MODEL",
        help="names, files of ONNX or TensorFlow Lite, zoo for networks of further families, int8 for quantized ones, "
        + "or glow_paper for further ones of that evaluation (the default: "
        + ", ".join(WORKLOADS)
        + ")",
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--rounds", type=count, default=9, help="rounds of timing (9)")
    parser.add_argument("--threads", nargs="+", type=count, default=[1], help="threads of an inference, or several")
    add_core(parser, "the first core to run on")
    parser.add_argument("--budget", type=seconds, default=0.25, help="seconds of calls, each engine and round (0.25)")
    parser.add_argument("--timeout", type=seconds, default=900.0, help="seconds to wait for an engine to load (900)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"environments, models and logs ({FOLDER})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--resume", action="store_true", help="keep what the file of --json has, and measure the rest")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report to FILE, a picture next to it")
    options = parser.parse_args(command)
    if options.rounds < 1 or min(options.threads) < 1 or options.budget <= 0:
        parser.error("rounds and threads are at least 1, and the budget is more than nothing")
    if options.resume and options.json is None:
        parser.error("what is resumed is in the file of --json")
    for path in (options.json, options.write):
        if path is not None and not path.parent.is_dir():
            parser.error(f"there is no folder {path.parent} to write {path.name} to")
    try:
        options.cores = [cores_from(options.core, threads) for threads in options.threads]
        options.models = names_of(options.models)
    except ValueError as error:
        parser.error(str(error))
    return options


def measure(options: argparse.Namespace) -> list[Measurement]:
    """Measure all models with all engines that take them; ours and the reference always take part."""
    kinds = {TFLITE_FILE if name.endswith(TFLITE_FILE) else ONNX_FILE for name in options.models}
    chosen = {OURS, *(REFERENCES[kind] for kind in kinds), *options.engines}
    chosen = {name for name in chosen if kinds.intersection(ENGINES[name].models)}
    found = pythons([name for name in ENGINES if name in chosen], options.folder)
    measurements = earlier(options)
    done = {(measurement.workload, measurement.threads) for measurement in measurements}
    for cores in options.cores:
        settings = Settings(options.rounds, cores, options.budget, options.timeout, options.folder)
        probe = Probe(cores)
        for name in options.models:
            if (short_name(name), len(cores)) in done:
                continue
            workload = write_workload(name, options.folder / "models")
            measurements.append(Turns(workload, settings, probe).run(found))
            write(options, Run(machine(), options.rounds, measurements))
    return measurements


def earlier(options: argparse.Namespace) -> list[Measurement]:
    """What an earlier run measured, where one is resumed."""
    if not options.resume or not options.json.exists():
        return []
    return Run.from_data(json.loads(options.json.read_text())).measurements


def write(options: argparse.Namespace, run: Run) -> None:
    """Write what there is so far, so that a run that is interrupted leaves its figures."""
    if options.json is not None:
        write_text(json.dumps(run.as_data(), indent=1) + "\n", options.json)
    if options.write is not None:
        page = document(run, options.write.stem)
        for name, text in pictures_of(page, options.write.stem).items():
            write_text(text, options.write.with_name(name))
        write_text(page, options.write)


def leave(number: int, _: FrameType | None) -> None:
    """End this process in answer to a signal, the workers first: they are stopped on the way out."""
    sys.exit(128 + number)


def main() -> None:
    """Measure, print the report, write what is asked for."""
    options = arguments_from()
    signal.signal(signal.SIGTERM, leave)
    try:
        measurements = measure(options)
    except NotAWorkload as error:
        sys.exit(f"peers.py: error: {error}")
    print(document(Run(machine(), options.rounds, measurements), None))


if __name__ == "__main__":
    main()
