"""The options that select the passes to run, shared by all tools."""

from __future__ import annotations

import argparse
from argparse import Namespace
from typing import TYPE_CHECKING

from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.driver.pipelines import Pipeline
from glow_mlir.tools.arguments.option_arguments import names
from glow_mlir.tools.arguments.target_arguments import add_target_argument
from glow_mlir.tools.command_line import ArgumentGroup

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def add_ladder_arguments(group: ArgumentGroup | argparse.ArgumentParser, *, stage: str | None = None) -> None:
    """Add `--pipeline`, `--stop-after`, `--target` and `--disable-passes`; `stage` is the default stage to stop at."""
    group.add_argument(
        "--pipeline",
        "--backend",
        dest="pipeline",
        metavar="NAME",
        help="the pipeline to run: optimize, or the name of a backend, as glow-opt --list-pipelines prints them "
        f"(default: with --stop-after, the backend that the module names, else {DEFAULT_BACKEND})",
    )
    group.add_argument(
        "--stop-after",
        "--stage",
        dest="stage",
        default=stage,
        metavar="STAGE",
        help="run the pipeline up to this stage: imported, optimized, lowered, scheduled, instructions, stacked, "
        f"selected, allocated, structured or llvm{f' (default: {stage})' if stage else ''}",
    )
    add_target_argument(group, "the machine that the pipeline compiles for", dest="machine")
    add_disable_argument(group)
    for side, text in (("before", "in front of the first"), ("after", "behind the last")):
        group.add_argument(
            f"--insert-{side}",
            dest=side,
            action="append",
            default=[],
            type=insertion,
            metavar="PASS:PASSES",
            help=f"run these passes {text} PASS of the pipeline, as 'stack:my-pass{{x=1}}'",
        )


def insertion(text: str) -> tuple[str, str]:
    """Parse PASS:PASSES, a pass of a pipeline and the passes to insert next to it."""
    anchor, _, passes = text.partition(":")
    if not anchor or not passes:
        raise argparse.ArgumentTypeError(f"expected PASS:PASSES, got '{text}'")
    return anchor, passes


def add_disable_argument(group: ArgumentGroup | argparse.ArgumentParser) -> None:
    """Add `--disable-passes`."""
    group.add_argument(
        "--disable-passes",
        dest="disable",
        type=names,
        default=(),
        metavar="PASSES",
        help="leave these passes out of the pipeline, wherever they occur",
    )


def chosen_pipeline(args: Namespace, module: ModuleOp | None = None) -> Pipeline | None:
    """
    The pipeline that the options select, or `None`. Without a pipeline name, use the backend that the module names.

    Raises `OptionError` for an unknown name, and where functions name different backends.
    """
    from glow_mlir.backends.interface import module_backend, named_pipeline

    if args.pipeline is None and args.stage is None and not (args.disable or args.before or args.after):
        return None
    name = args.pipeline or (DEFAULT_BACKEND if module is None else module_backend(module))
    found = named_pipeline(name, args.machine).without(*args.disable)
    for anchor, passes in args.before:
        found = found.before(anchor, passes)
    for anchor, passes in args.after:
        found = found.after(anchor, passes)
    return found


def pipeline_list(target: str | None) -> str:
    """The text of `--list-pipelines`: each pipeline, its stages, and their passes."""
    from glow_mlir.backends.interface import named_pipelines

    lines: list[str] = []
    for pipeline in named_pipelines(target).values():
        lines.append(pipeline.name)
        width = max(map(len, pipeline.stage_names))
        for stage in pipeline.stages:
            lines.append(f"  {stage.name:{width}}  {','.join(map(str, stage.specs))}".rstrip())
    return "\n".join(lines)
