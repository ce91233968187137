"""Runs passes one after the other under the eyes of observers, and tells the user's mistakes from the compiler's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, ShrinkException, VerifyException

from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.driver.reproducer import write_reproducer
from glow_mlir.errors import CompilerBugError, GlowError, ParseFailure
from glow_mlir.ir.checks import CheckFailed
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.text import one_line, position_of, verify_module


@dataclass
class PassRunner:
    """Runs passes; `reproducer` is where to write one for any failure, else there is one only for a compiler bug."""

    context: Context
    observers: Sequence[PassObserver] = ()
    verify_each: bool = True
    reproducer: Path | None = None

    def run(self, passes: Sequence[ModulePass], module: ModuleOp, *, is_stage: bool = False) -> None:
        """
        Run passes on a module; raises `GlowError` where one fails, a `CompilerBugError` where that is our fault.

        The passes of a stage verify what they made themselves: with `is_stage`, that they do not succeed is our fault.
        """
        original = module.clone()
        for position, item in enumerate(passes):
            try:
                self._run_one(item, module)
            except ShrinkException:
                raise
            except Exception as error:
                for observer in self.observers:
                    observer.failed(item, module)
                is_ours = is_stage and position > 0 and isinstance(error, VerifyException)
                is_bug = is_ours or is_compiler_bug(item, error)
                raise self._explained(error, original, passes[: position + 1], is_bug=is_bug) from error

    def _run_one(self, item: ModulePass, module: ModuleOp) -> None:
        for observer in self.observers:
            observer.before(item, module)
        item.apply(self.context, module)
        if self.verify_each:
            try:
                verify_module(module)
            except ParseFailure as error:
                raise CompilerBugError(f"it gives invalid IR: {error}") from error
        for observer in self.observers:
            observer.after(item, module)

    def _explained(
        self, error: Exception, original: ModuleOp, passes: Sequence[ModulePass], *, is_bug: bool
    ) -> GlowError:
        """The error to report for the failure of the last of `passes`."""
        name = passes[-1].name
        path = self.reproducer
        if is_bug or path is not None:
            path = write_reproducer(original, passes, error, path, verify_each=self.verify_each)
        if is_bug:
            reason = error.reason if isinstance(error, GlowError) else f"{type(error).__name__}: {one_line(error)}"
            hint = f"please report it with the reproducer {path}"
            return CompilerBugError(f"pass '{name}' failed, a bug of ours: {reason}", hint=hint)
        if isinstance(error, GlowError):
            return error
        if isinstance(error, CheckFailed):
            location = error.op.location
            return ParseFailure(f"{name}: {error}", file=position_of(location), node=location_name(location))
        return ParseFailure(f"{name}: {one_line(error)}")


def is_compiler_bug(item: ModulePass, error: Exception) -> bool:
    """
    Whether the failure of a pass is the compiler's fault.

    It is not where the pass says what is wrong with the module: by a `GlowError`, a diagnostic of xDSL's, or, for a
    pass that verifies, a `VerifyException`. From any other pass that one means that it built something invalid.
    """
    if isinstance(error, VerifyException) and not isinstance(error, GlowError):
        return not item.name.startswith("verify-")
    return isinstance(error, CompilerBugError) or not isinstance(error, GlowError | DiagnosticException)
