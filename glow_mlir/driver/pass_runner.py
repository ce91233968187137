"""The pass runner: runs passes in sequence with observers, and separates user errors from compiler bugs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, ShrinkException, VerifyException

from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.driver.reproducer import write_reproducer
from glow_mlir.errors import CompilerBugError, ExtensionError, GlowError, ParseFailure
from glow_mlir.ir.checks import CheckFailed
from glow_mlir.ir.context import new_context
from glow_mlir.ir.locations import location_name, source_location, source_location_of_node
from glow_mlir.ir.out_of_memory import out_of_memory
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.text import one_line, verify_module
from glow_mlir.support.blame import failing_library, foreign_location, library_of, source_location_of_class
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass


@dataclass
class PassRunner:
    """
    The configuration of pass runs: observers, verification of the module after each pass, and the reproducer.

    `reproducer` is the file to write for any failure; without it, only compiler bugs write one.
    """

    context: Context = field(default_factory=new_context)
    observers: Sequence[PassObserver] = ()
    verify_each: bool = False
    reproducer: Path | None = None

    def run(self, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Run passes on a module; raises `GlowError` for a failure, `CompilerBugError` if it is our bug."""
        run = self.begin(module, is_checked=False)
        for item in passes:
            run.apply(item)

    def begin(self, module: ModuleOp, *, is_checked: bool, again: Callable[[], ModuleOp] | None = None) -> PassRun:
        """
        Begin to run passes on a module, one by one.

        `is_checked` says that the module's invariants have been verified: a later violation is our bug. `again`
        recreates the module after a failure; without it, a copy is kept.
        """
        return PassRun(self, module, module.clone().clone if again is None else again, is_checked)


@dataclass
class PassRun:
    """A sequence of passes on a module; `original` recreates the initial module."""

    runner: PassRunner
    module: ModuleOp
    original: Callable[[], ModuleOp]
    is_checked: bool
    _passes: list[ModulePass] = field(default_factory=list[ModulePass])
    _verified: list[object] | None = None
    """The state of the module when last verified."""

    def apply(self, item: ModulePass) -> None:
        """Run the next pass; raises `GlowError` as `PassRunner.run`."""
        self._passes.append(item)
        try:
            self._apply(item)
        except ShrinkException:
            raise
        except Exception as error:
            for observer in self.runner.observers:
                observer.failed(item, self.module)
            if isinstance(error, MemoryError):
                raise out_of_memory(self.original(), error) from error
            raise self._explained(item, error) from error

    def _apply(self, item: ModulePass) -> None:
        check_cancellation()
        runner = self.runner
        for observer in runner.observers:
            observer.before(item, self.module)
        apply_pass(item, runner.context, self.module)
        if runner.verify_each and (state := _state_of(self.module)) != self._verified:
            try:
                verify_module(self.module)
            except ParseFailure as error:
                raise _InvalidResult(error) from error
            self._verified = state
        for observer in runner.observers:
            observer.after(item, self.module)

    def _explained(self, item: ModulePass, error: Exception) -> GlowError:
        """The error to report for a failure of the last pass."""
        hint, path = "", self.runner.reproducer
        if (failure := _of_extension(item, error)) is not None:
            failure.hint = self._reproduced(error, path) if path is not None else ""
            return failure
        is_ours = self.is_checked and isinstance(error, VerifyException) and not isinstance(error, GlowError)
        is_bug = is_ours or is_compiler_bug(item, error)
        if is_bug or path is not None:
            hint = self._reproduced(error, path)
        if is_bug:
            reason = error.reason if isinstance(error, GlowError) else f"{type(error).__name__}: {one_line(error)}"
            return CompilerBugError(f"pass '{item.name}' failed, a bug of ours: {reason}", hint=hint)
        if isinstance(error, GlowError):
            error.file = error.file or (source_location_of_node(self.module, error.node) if error.node else "")
            return error
        if isinstance(error, CheckFailed):
            node = location_name(error.op.location)
            return ParseFailure(f"{item.name}: {error}", file=source_location(error.op), node=node)
        return ParseFailure(f"{item.name}: {one_line(error)}")

    def _reproduced(self, error: Exception, path: Path | None) -> str:
        """Write a reproducer of the last pass; returns the note for the error."""
        try:
            path = write_reproducer(self.original(), self._passes, error, path, verify_each=self.runner.verify_each)
        except GlowError as failure:
            return f"please report it; there is no reproducer, since {failure.file or path} {failure.reason}"
        return f"please report it with the reproducer {path}; 'glow-opt {path} --run-reproducer' shows it again"


def _state_of(module: ModuleOp) -> list[object]:
    """A fingerprint of the module: if it is unchanged, so is the verdict of a verifier."""
    state: list[object] = []
    for op in module.walk():
        state += (op, op.parent, *op.operands, *op.successors, *op.properties.items(), *op.attributes.items())
        state += [value for result in op.results for value in (result, result.type)]
        blocks = [block for region in op.regions for block in region.blocks]
        state += (*op.regions, *blocks)
        state += [value for block in blocks for argument in block.args for value in (argument, argument.type)]
    return state


def _of_extension(item: ModulePass, error: Exception) -> GlowError | None:
    """The error for a failure that code of another package causes; `None` otherwise."""
    if isinstance(error, _InvalidResult):
        file_position, library = source_location_of_class(type(item)), library_of(type(item))
        of = f" of {library}" if library else ""
        reason = f"pass '{item.name}'{of} gives invalid IR: {error.cause.reason}"
        found = ExtensionError(reason, file=error.cause.file, node=error.cause.node)
        note = ExtensionError(f"pass '{item.name}' is defined here", file=file_position)
        return found.with_notes([note] if file_position else []) if file_position or library else None
    says_itself = isinstance(error, GlowError | DiagnosticException) and not isinstance(error, VerifyException)
    if says_itself or isinstance(error, CheckFailed):
        return None
    what = f"failed: {type(error).__name__}: {one_line(error)}".removesuffix(": ")
    if file_position := foreign_location(error):
        return ExtensionError(f"pass '{item.name}' {what}", file=file_position)
    # Our code may find its result invalid.
    is_invalid = isinstance(error, VerifyException)
    library = library_of(type(item)) if is_invalid else failing_library(type(item), error)
    return ExtensionError(f"pass '{item.name}' of {library} {what}") if library else None


class _InvalidResult(CompilerBugError):
    """A pass that leaves the module invalid; `cause` has the reason."""

    def __init__(self, cause: ParseFailure) -> None:
        super().__init__(f"it gives invalid IR: {cause}")
        self.cause = cause


def is_compiler_bug(item: ModulePass, error: Exception) -> bool:
    """
    Whether the failure of a pass is a compiler bug.

    It is not if the pass reports an invalid module: by a `GlowError`, a diagnostic of xDSL's, or, for a verification
    pass, a `VerifyException`. From any other pass, the latter means that it built something invalid.
    """
    if isinstance(error, VerifyException) and not isinstance(error, GlowError):
        return not item.name.startswith("verify-")
    return isinstance(error, CompilerBugError) or not isinstance(error, GlowError | DiagnosticException)
