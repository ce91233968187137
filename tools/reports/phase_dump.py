"""`--dump-phases`: the module at each stage of a compilation, and the generated code, in numbered files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.weights import write_weights
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import LLVM, Stage
from glow_mlir.errors import OptionError
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import WEIGHTS_SUFFIX, digests, make_folder, module_text, write_text

WEIGHTS = f"model{WEIGHTS_SUFFIX}"
"""The only weight file of all stages; links next to each stage point to it."""


class PhaseDump:
    """
    An observer of a compilation that writes each stage into a folder, as `02-lowered.mlir` with locations.

    After the last stage LLVM's own text (`.ll`) and the assembly (`.s`) follow; where functions have several targets,
    there are both for each, named after its first function. So are the stages that a device's partitions go through
    by themselves. Every stage parses back: beside each lies a link to the weights, which `finish` writes.
    """

    def __init__(self, folder: Path, stages: Sequence[str]) -> None:
        self.folder = folder
        self._targets: dict[str, Target] = {}
        self._stages = tuple(stages)
        self._numbers = {name: number for number, name in enumerate(stages)}
        self._used: dict[str, list[str]] = {}
        make_folder(folder)

    def __call__(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        """Write one stage."""
        if named := {function.sym_name.data: function.assigned for function in functions(module)}:
            self._targets = {name: assigned.data for name, assigned in named.items() if assigned}
        path = self._path(stage)
        write_text(module_text(module, locations=True), path)
        self._used[path.stem] = list(digests(module))
        if stage.name == LLVM:
            self._write_code(module, path)

    def _path(self, stage: Stage) -> Path:
        """The path of a stage."""
        number = self._numbers.setdefault(stage.name, len(self._numbers))
        of = "" if stage.name in self._stages else f"-{next(iter(self._targets))}"
        return self.folder / f"{number:02}-{stage.name}{of}.mlir"

    def _write_code(self, module: ModuleOp, path: Path) -> None:
        from glow_mlir.codegen.glow_low_to_scf import modules_of_targets
        from glow_mlir.codegen.llvm.emit import emit_module
        from glow_mlir.codegen.llvm.objects import assembly_text

        parts = modules_of_targets(module, self._targets)
        for target, part in parts.items():
            first = next(name for name, own in self._targets.items() if own == target)
            stem = f"{path.stem}-{first}" if len(parts) > 1 else path.stem
            text = emit_module(part)
            write_text(text, path.with_name(f"{stem}.ll"))
            write_text(assembly_text(text, target), path.with_name(f"{stem}.s"))

    def finish(self) -> None:
        """Write the weights of all stages once; also called after a failed compilation."""
        used = dict.fromkeys(digest for found in self._used.values() for digest in found)
        try:
            if used:
                write_weights(self.folder / WEIGHTS, used)
            for stem, found in self._used.items():
                link = self.folder / f"{stem}{WEIGHTS_SUFFIX}"
                link.unlink(missing_ok=True)
                if found:
                    link.symlink_to(WEIGHTS)
        except OSError as error:
            raise OptionError(f"cannot be written: {error.strerror}", file=str(self.folder)) from error
