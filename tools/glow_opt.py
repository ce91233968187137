"""`glow-opt`: xDSL's optimizer driver with our dialects and passes, our extended `llvm` dialect, and MLIR's options."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError, ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from glow_mlir.driver.pipelines import LLVM, PassObserver, Pipeline, Stage, available_passes, parse_pipeline, pass_specs
from glow_mlir.driver.reproducer import reproducer_options
from glow_mlir.errors import CompilerBugError, ExtensionError, GlowError, OptionError, ParseFailure
from glow_mlir.ir.context import COMPLETED
from glow_mlir.ir.text import (
    digests,
    module_text,
    one_line,
    parse_module,
    parse_unverified,
    read_text,
    read_weights_of,
    write_text,
)
from glow_mlir.ir.universe import GLOW_UNIVERSE
from glow_mlir.support.activity import warn, warning_to
from glow_mlir.support.blame import foreign_location
from glow_mlir.tools.arguments.ladder_arguments import chosen_pipeline, pipeline_list
from glow_mlir.tools.arguments.opt_arguments import DUMPS, REFUSED, SHORT_WITH_VALUES, add_arguments
from glow_mlir.tools.arguments.pass_flags import with_pass_flags, with_two_dashes
from glow_mlir.tools.arguments.repeated_options import forget_given
from glow_mlir.tools.command_line import (
    EXIT_ERROR,
    EXIT_OK,
    TERMINAL_LIMIT,
    diagnostics,
    error_line,
    is_terminal,
    option_error,
    options_of,
    report,
    run_tool,
    spelled,
)
from glow_mlir.tools.mlir_text.expected_diagnostics import expected_diagnostics, mismatches
from glow_mlir.tools.mlir_text.source_lines import STDIN, read_stdin
from glow_mlir.tools.mlir_text.split_input import SEPARATOR, pieces
from glow_mlir.tools.mlir_text.xdsl_diagnostics import words_of_xdsl
from glow_mlir.tools.pass_plugins import load_plugins
from glow_mlir.tools.reports.log_output import wanted_log, write_log
from glow_mlir.tools.reports.pass_reports import IrPrinter, PassTimes, Statistics, Timer

if TYPE_CHECKING:
    from glow_mlir.driver.pass_runner import PassRunner

PROGRAM = "glow-opt"


class GlowOpt(xDSLOptMain):
    """xDSL's driver with our universe (whether or not its entry point is installed) and our options."""

    def register_all_dialects(self) -> None:
        known = {**Universe.get_multiverse().all_dialects, **GLOW_UNIVERSE.all_dialects, **COMPLETED}
        for name, factory in known.items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        self.available_passes = available_passes()

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        add_arguments(arg_parser)
        arg_parser.error = partial(refuse, arg_parser)
        setattr(arg_parser, "parse_args", parsed_as_mlir(arg_parser))  # Called by xDSL's driver and by reproducers.
        self.parser = arg_parser

    def setup_pipeline(self) -> None:
        # Passes are parsed when they run, because a reproducer may replace them.
        self.pipeline = PassPipeline(())

    def execute(self) -> int:
        """Run the arguments; return the exit code."""
        from glow_mlir.driver.pass_runner import PassRunner

        if self.args.list_passes:
            from glow_mlir.tools.reports.pass_list import pass_list

            print(pass_list())
            return EXIT_OK
        if self.args.show_dialects:
            print("\n".join(sorted(self.ctx.registered_dialect_names)))
            return EXIT_OK
        if self.args.list_pipelines:
            print(pipeline_list(self.args.machine))
            return EXIT_OK
        text = self._read()
        if self.args.run_reproducer:
            self._take_options(reproducer_options(text, self.get_input_name()))
        self.pipeline = parse_pipeline(self.args.passes)
        chosen_pipeline(self.args)  # Report wrong options before parsing the module.
        timer = Timer(self.args.mlir_timing_display)
        self.log = wanted_log(self.args)
        runner = PassRunner(self.ctx, self._observers(timer), self._verifies, self._reproducer)
        try:
            with timer.imports if self.args.mlir_timing else nullcontext():
                return self._run_pieces(text, runner, timer)
        except ShrinkException:
            print("Success, can shrink")
            return EXIT_OK
        finally:
            for observer in runner.observers:
                observer.finish()

    def get_input_name(self) -> str:
        """The name of the input in errors and locations."""
        return STDIN if self.args.input_file in (None, "-") else self.args.input_file

    @property
    def _verifies(self) -> bool:
        return self.args.verify_each and not self.args.disable_verify

    @property
    def _reproducer(self) -> Path | None:
        return Path(self.args.reproducer) if self.args.reproducer else None

    @property
    def _output(self) -> Path | None:
        """The output file; `None` is stdout."""
        return None if self.args.output_file in (None, "-") else Path(self.args.output_file)

    def _read(self) -> str:
        """Read the text of the input, and load the weights next to an input file."""
        if self.get_input_name() == STDIN:
            return read_stdin()
        path = Path(self.args.input_file)
        text = read_text(path)
        self._kept = read_weights_of(path)
        return text

    def _dump_pipeline(self, ladder: Pipeline | None) -> None:
        """Print all requested passes as one pipeline."""
        ahead = () if ladder is None else (ladder.until(self.args.stage) if self.args.stage else ladder).specs
        print(Pipeline("passes", (Stage("all", (*ahead, *pass_specs([self.args.passes]))),)), file=sys.stderr)

    def _take_options(self, options: list[str]) -> None:
        """Parse further options over those of the command line."""
        forget_given(self.args)
        given = [] if self.args.input_file is None else [self.args.input_file]
        self.parser.parse_args([*options, *given], self.args)

    def _observers(self, timer: Timer) -> list[PassObserver]:
        """The observers that the options request."""
        args = self.args
        check_dumps(args)
        printer = IrPrinter(
            before_passes=None if args.mlir_print_ir_before_all else known_passes(args.mlir_print_ir_before),
            after_passes=None
            if args.mlir_print_ir_after_all or args.print_between_passes
            else known_passes(args.mlir_print_ir_after),
            after_change=args.mlir_print_ir_after_change,
            after_failure=args.mlir_print_ir_after_failure,
            folder=Path(args.mlir_print_ir_tree_dir) if args.mlir_print_ir_tree_dir else None,
            locations=args.print_debuginfo,
            limit=self._limit(is_terminal(sys.stderr)),
        )
        optional: list[tuple[bool, PassObserver]] = [
            (args.mlir_timing, timer),
            (args.time_passes, PassTimes()),
            (args.mlir_pass_statistics, Statistics(display=args.mlir_pass_statistics_display)),
        ]
        log = () if self.log is None else (self.log,)
        return [printer, *(observer for wanted, observer in optional if wanted), *log]

    def _limit(self, terminal: bool) -> int | None:
        """The number of elements above which dense attributes are elided; `None` is never."""
        return TERMINAL_LIMIT if self.args.elide is None and terminal else self.args.elide

    def _run_pieces(self, text: str, runner: PassRunner, timer: Timer) -> int:
        """Process all pieces of the input, and write the output unless one failed; return the exit code."""
        code = EXIT_OK
        outputs: list[str] = []
        used: list[str] = []
        compares = self.args.verify_diagnostics and not self.args.xdsl_diagnostics
        expected = expected_diagnostics(text) if compares else []
        for piece in pieces(text) if self.args.split_input_file else [text]:
            reported: list[GlowError] = []
            try:
                with warning_to(reported.append) if expected else nullcontext():
                    module = self._process(piece, runner, timer)
                outputs.append(self._text(module))
                used += digests(module)
                error = None
            except GlowError as found:
                error = self._placed(found)
            if error is not None and not expected and self._is_announced(error):
                self._announce(error, outputs)
                continue
            code = max(code, self._judge(piece, error, reported) if expected else self._report(error))
        if self.log is not None:  # Before the output, whose writing may fail.
            write_log(self.log, self.args, sys.stderr)
        if self._output is None:
            print(f"{SEPARATOR}\n".join(outputs), end="")
            if (missing := len(set(used))) and not is_terminal(sys.stdout):
                reason = f"the text on stdout is without the weights of {missing} constant{'s' * (missing > 1)}"
                warn(OptionError(reason, hint="-o FILE writes them beside it"))
        elif code == EXIT_OK and outputs:
            write_text(f"{SEPARATOR}\n".join(outputs), self._output, used)
        timer.stop("Output")
        if self.args.shrink:
            print("Failure, can't shrink")
            return EXIT_ERROR
        return code

    def _process(self, text: str, runner: PassRunner, timer: Timer) -> ModuleOp:
        """Parse a module, and run everything requested on it."""
        timer.start()
        module = self._parse(text)
        timer.stop("Parser")
        ladder = chosen_pipeline(self.args, module)
        if self.args.dump_pass_pipeline:
            self._dump_pipeline(ladder)
        if ladder is not None:
            from glow_mlir.driver.compiler import Compilation

            Compilation(module, pipeline=ladder, runner=runner).run(self.args.stage)
        runner.run(self.pipeline.passes, module)
        timer.start()
        return module

    def _parse(self, text: str) -> ModuleOp:
        """Parse one piece of the input."""
        from glow_mlir.driver.model_checks import check_functions

        parse = parse_unverified if self.args.disable_verify else parse_module
        module = parse(text, self.ctx, self.get_input_name(), implicit_module=not self.args.no_implicit_module)
        check_functions(module)  # Also without verification: passes cannot handle other ops.
        return module

    def _text(self, module: ModuleOp) -> str:
        """The module as text in the output format."""
        args = self.args
        if args.target == LLVM:
            return self._llvm_ir(module)
        if parse_spec(args.target).name != "mlir" or args.syntax_highlight or args.print_no_properties:
            return self._emitted(module)
        return module_text(
            module,
            locations=args.print_debuginfo or self._output is not None,
            generic=args.print_op_generic,
            limit=self._limit(self._output is None and is_terminal(sys.stdout)),
            context=self.ctx,
        )

    def _emitted(self, module: ModuleOp) -> str:
        """
        The module in a format of xDSL or of another package.

        Raises `ParseFailure` where the format cannot express the module, and `ExtensionError` where the writer fails.
        """
        try:
            return self.output_resulting_program(module)
        except GlowError:
            raise
        except DiagnosticException as error:
            raise ParseFailure(f"{self.args.target}: {one_line(error)}") from error
        except Exception as error:
            what = f"the target '{self.args.target}' failed: {type(error).__name__}: {one_line(error)}"
            raise ExtensionError(what.removesuffix(": "), file=foreign_location(error)) from error

    def _llvm_ir(self, module: ModuleOp) -> str:
        """The module as LLVM IR; raises `OptionError` unless it consists of `llvm` ops."""
        from glow_mlir.codegen.llvm.emit import emit_module

        for op in module.body.block.ops:
            if not op.name.startswith("llvm."):
                reason = f"'{op.name}' is not of the llvm dialect, which LLVM IR is made from"
                raise OptionError(reason, file=self.get_input_name(), hint=f"--stop-after={LLVM} -t {LLVM}")
        return emit_module(module)

    def _placed(self, error: GlowError) -> GlowError:
        """Add the input as the file of an error about the input that names none."""
        if not isinstance(error, OptionError):
            error.file = error.file or self.get_input_name()
        return error

    def _judge(self, piece: str, error: GlowError | None, warnings: Sequence[GlowError]) -> int:
        """Compare the result of one piece of the input with its expected diagnostics; return the exit code."""
        found = [("warning", warning) for warning in warnings] + ([] if error is None else [*diagnostics(error)])
        wrong = mismatches(expected_diagnostics(piece), found, self.get_input_name())
        return max((report(PROGRAM, problem, debug=self.args.debug) for problem in wrong), default=EXIT_OK)

    def _is_announced(self, error: GlowError) -> bool:
        """Whether the options expect such an error, which is then part of the output."""
        is_syntax = isinstance(error.__cause__, ParseError)
        announced = self.args.parsing_diagnostics if is_syntax else self.args.verify_diagnostics
        return announced and not isinstance(error, CompilerBugError)

    def _announce(self, error: GlowError, outputs: list[str]) -> None:
        """Replace the output of a piece by its error, or print the error on stdout if the output goes to a file."""
        lines = [f"{error_line(PROGRAM, item, sys.stdout, severity)}\n" for severity, item in diagnostics(error)]
        words = words_of_xdsl(error)
        text = words if self.args.xdsl_diagnostics and words else "".join([words, *lines])
        if self._output is None:
            outputs.append(text)
        else:
            print(text, end="")

    def _report(self, error: GlowError | None) -> int:
        """Report the result of a piece without expected diagnostics; return the exit code."""
        if error is None:
            return EXIT_OK
        if self.args.xdsl_diagnostics and (words := words_of_xdsl(error)):
            print(words, end="", file=sys.stderr)
        return report(PROGRAM, error, debug=self.args.debug)


def check_dumps(args: argparse.Namespace) -> None:
    """Raise `OptionError` for a dump folder without anything to dump."""
    if args.mlir_print_ir_tree_dir and not any(getattr(args, name) for name in (*DUMPS, "print_between_passes")):
        options = ", ".join(f"--{spelled(name)}" for name in DUMPS)
        raise OptionError("--mlir-print-ir-tree-dir says where dumps go, but not of what", hint=f"one of {options}")


def known_passes(chosen: Sequence[str]) -> Sequence[str]:
    """Return the names; raises `OptionError` for an unknown pass."""
    for name in chosen:
        if name not in available_passes():
            raise OptionError(f"there is no pass '{name}'", hint="--list-passes prints all")
    return chosen


def refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Raise the error for arguments that argparse refuses."""
    unknown = message.partition("unrecognized arguments: ")[2].split("=")[0].split(" ")[0]
    if unknown in REFUSED:
        raise OptionError(f"there is no {unknown}", hint=REFUSED[unknown])
    passes = [f"--{name}" for name in available_passes()]
    raise option_error(PROGRAM, message.replace("-t/--target", "-t/--emit"), [*options_of(parser), *passes])


def parsed_as_mlir(parser: argparse.ArgumentParser) -> Callable[..., argparse.Namespace]:
    """Return the `parse_args` of a parser, for arguments as mlir-opt accepts them."""
    parse, known = parser.parse_args, options_of(parser)

    def parsed(args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None) -> argparse.Namespace:
        spelled = with_pass_flags(with_two_dashes(args or (), known, SHORT_WITH_VALUES))
        return parse(spelled) if namespace is None else parse(spelled, namespace)

    return parsed


@contextmanager
def deprecations_reported() -> Generator[None]:
    """Report the DeprecationWarnings of passes and targets, which Python hides, as warnings."""

    def tell(text: Warning | str, kind: type[Warning], file: str, *_: object) -> None:
        warn(GlowError(f"{kind.__name__}: {one_line(text)}"))

    with warnings.catch_warnings():
        warnings.simplefilter("default", DeprecationWarning)
        warnings.showwarning = tell
        yield


def run(arguments: list[str]) -> int:
    """Run the tool on its arguments."""
    try:
        load_plugins(arguments)  # First, because passes are options.
        with deprecations_reported():
            return GlowOpt(args=arguments).execute()
    except ArgSpecParseError as error:
        raise OptionError(one_line(error)) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run `glow-opt`; the exit code: 0 success, 1 wrong input or options, 2 a bug in the compiler."""
    return run_tool(PROGRAM, run, argv)


if __name__ == "__main__":
    sys.exit(main())
