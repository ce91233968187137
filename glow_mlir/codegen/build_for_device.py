"""From an allocated module to an artifact for a device: constants region, manifest with launch programs, and code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.codegen.build import build_entry, build_manifest, build_region, zeroed
from glow_mlir.codegen.glow_low_to_scf import GlowLowToScfPass
from glow_mlir.dialects.glow_low.memory import FuncOp
from glow_mlir.dialects.target import Target
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.launches import LaunchProgram
from glow_mlir.support.collector import without_collector
from glow_mlir.support.parallel_work import both

Emit = Callable[[Sequence[FuncOp], Target], tuple[str, list[LaunchProgram]]]
"""Emits the device functions of functions for one target as LLVM IR text, with the launch program of each function."""

Translate = Callable[[str, Target], bytes]
"""Translates LLVM IR text to code that the device loads."""


@without_collector()
def build_device_artifact(
    module: ModuleOp, emit: Emit, translate: Translate, allocate: Callable[[int], np.ndarray] = zeroed
) -> Artifact:
    """
    Compile the functions of an allocated module for their device; they share their constants.

    `allocate` returns zero bytes for these. Raises `ModelError` for anything that a launch program cannot express.
    """
    functions = low_functions(module)
    targets = list(dict.fromkeys(function.target for function in functions))
    host = GlowLowToScfPass(cancellable=False)
    entries = {
        function.sym_name.data: build_entry(function, False, targets.index(function.target), host)
        for function in functions
    }
    texts: list[str] = []
    for target in targets:
        text, programs = emit([function for function in functions if function.target == target], target)
        texts.append(text)
        for program in programs:
            entries[program.name] = replace(entries[program.name], program=program)
    manifest, contents = build_manifest(module, list(entries.values()))
    code, constants = both(
        lambda: tuple(map(translate, texts, targets)),
        lambda: build_region(contents, allocate),
    )
    return Artifact(code, constants, manifest)
