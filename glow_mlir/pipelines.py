"""The ladder as values: the stages of a compilation, and the passes that lead to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.passes import ModulePass, PassPipeline
from xdsl.transforms import get_all_passes
from xdsl.utils.exceptions import ArgSpecParseError

from glow_mlir.errors import OptionError
from glow_mlir.universe import GLOW_UNIVERSE

OPTIMIZE = (
    "canonicalize,fold-constants,sink-transposes,fold-constants,fold-transposes-into-matmul,fold-into-convolution,"
    "canonicalize,cse,remove-unused-storage"
)
"""Target-independent optimization of a graph."""


@dataclass(frozen=True)
class Stage:
    """One stage of the ladder: its name, and the passes that lead to it from the stage before."""

    name: str
    spec: str

    def passes(self) -> tuple[ModulePass, ...]:
        """The passes themselves."""
        return parse_pipeline(self.spec).passes if self.spec else ()


def stages(backend: str = "cpu", target: str = "host", profile: bool = False) -> tuple[Stage, ...]:
    """The ladder for a backend and a target machine; the interpreter's ends after `optimized`."""
    graph = (Stage("imported", ""), Stage("optimized", OPTIMIZE))
    if backend == "interpreter":
        return graph
    instrument = " profile=true" if profile else ""
    return (
        *graph,
        Stage(
            "lowered",
            f"lower{{backend={backend}}},canonicalize,fold-constants,fold-into-convolution,cse,"
            f"lower{{backend={backend}}},remove-unused-storage,verify-lowered{{backend={backend}}}",
        ),
        Stage("scheduled", "schedule"),
        Stage("instructions", "glow-high-to-glow-low,verify-low"),
        Stage(
            "stacked",
            f"decompose-data-movement,eliminate-copies{{backend={backend}}},stack,fuse-epilogues{{backend={backend}}},"
            f"fuse-prologues{{backend={backend}}},share-buffers,eliminate-dead-stores,shorten-lifetimes,verify-low",
        ),
        Stage("selected", f"select{{backend={backend} target={target}}},remove-unused-storage,verify-selected"),
        Stage("allocated", "shorten-lifetimes,allocate,verify-allocated"),
        Stage("llvm", f"glow-low-to-llvm{{target={target}{instrument}}}"),
    )


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """All passes by name: xDSL's and ours."""
    return {**get_all_passes(), **GLOW_UNIVERSE.all_passes}


def parse_pipeline(spec: str) -> PassPipeline:
    """
    The pipeline that `-p` or `--pass-pipeline` describes; raises `OptionError` for an unknown pass or option.

    Accepts `a,b{x=1}` and `builtin.module(a,b{x=1})`.
    """
    text = spec.strip()
    if text.startswith("builtin.module(") and text.endswith(")"):
        text = text[len("builtin.module(") : -1]
    try:
        return PassPipeline.parse_spec(available_passes(), text)
    except ArgSpecParseError as error:
        *_, mark, message = [line for line in str(error).splitlines() if line.strip()]
        raise OptionError(f"pass pipeline '{spec}': {message.strip()} (column {mark.index('^') + 1})") from error
    except (ValueError, TypeError) as error:
        raise OptionError(f"pass pipeline '{spec}': {error}", hint="glow-opt --list-passes lists them") from error
