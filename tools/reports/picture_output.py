"""`--dump-dot` and `--dump-html`: pictures of a compilation, collected at its stages."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import field
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.driver.pass_counts import PassCount, PassCounts
from glow_mlir.driver.pipelines import LLVM, Pipeline, Stage
from glow_mlir.errors import OptionError
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import write_text
from glow_mlir.pictures.dot import dot
from glow_mlir.pictures.graph import ENTRY, Graph, graph_of
from glow_mlir.pictures.memory import Memory, memory_of
from glow_mlir.pictures.page import Page, Shown, StepTime
from glow_mlir.support.dataclass import dataclass

DEFAULT_STAGE = "optimized"

PAGE_STAGES = ("imported", "optimized", "allocated")
"""Stages whose graphs a page shows."""


@dataclass
class Pictures:
    """An observer of stages that collects the data of the pictures."""

    args: Namespace
    pipeline: Pipeline
    log: CompilationLog = field(default_factory=CompilationLog)
    graphs: dict[str, Graph] = field(default_factory=dict[str, Graph])
    counts: PassCounts = field(default_factory=PassCounts)
    passes: dict[str, list[PassCount]] = field(default_factory=dict[str, list[PassCount]])
    """Stage → the passes that led to it from the previous stage."""
    memory: Memory | None = None
    times: list[StepTime] = field(default_factory=list[StepTime])
    """The measured times of the entry, if `--profile` is given."""

    def __post_init__(self) -> None:
        if self.pipeline.stages[self.pipeline.position(self.stage)].name == LLVM:
            raise OptionError(f"the stage '{LLVM}' has no graph", hint="--dot-stage allocated is the last that has")

    @property
    def stage(self) -> str:
        """The stage whose graph `--dump-dot` writes."""
        return self.args.dot_stage or DEFAULT_STAGE

    @property
    def entry(self) -> str:
        """The function that is run."""
        return self.args.entry or ENTRY

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        """Keep the passes of a stage, and its graph if a picture shows it."""
        known = sum(map(len, self.passes.values()))
        self.passes.setdefault(stage.name, []).extend(self.counts.runs[known:])
        wanted = (self.args.dump_dot is not None and stage.name == self.stage) or (
            self.args.dump_html is not None and stage.name in PAGE_STAGES
        )
        if wanted and (found := functions(module)):
            self.graphs[stage.name] = graph_of(found, Storage(module))
        if self.args.dump_html is not None and stage.name == "allocated":
            self.memory = memory_of(module, self.entry)

    def write(self, title: str) -> None:
        """Write the files; raises `OptionError` if a stage was not reached, or writing fails."""
        if self.args.dump_dot is not None:
            if self.stage not in self.graphs:
                raise OptionError(f"the module did not go through the stage '{self.stage}'")
            write_text(dot(self.graphs[self.stage], f"{title}: {self.stage}"), Path(self.args.dump_dot))
        if self.args.dump_html is not None:
            write_text(Page(title, [self.shown()]).html(), Path(self.args.dump_html))

    def shown(self, label: str = "") -> Shown:
        """The page's data about the compilation; raises `OptionError` if it passed none of the page's stages."""
        graphs = {stage: graph for stage, graph in self.graphs.items() if stage in PAGE_STAGES}
        if not graphs:
            raise OptionError("the module did not go through a stage that the page shows")
        return Shown(label, self.memory, graphs, self.log, self.passes, self.times, self.entry)
