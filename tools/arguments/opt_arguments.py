"""The options of `glow-opt`; options that MLIR has keep MLIR's spelling."""

from __future__ import annotations

import argparse

from glow_mlir.support.arguments import truth
from glow_mlir.tools.arguments.bounded_numbers import natural
from glow_mlir.tools.arguments.ladder_arguments import add_ladder_arguments
from glow_mlir.tools.arguments.option_arguments import names
from glow_mlir.tools.arguments.repeated_options import give_once
from glow_mlir.tools.command_line import ArgumentGroup, add_common_arguments, examples_epilog
from glow_mlir.tools.reports.log_output import add_log_arguments

DESCRIPTION = "Run passes over a module of any stage: MLIR's mlir-opt for the dialects glow_high, glow_low and llvm."

REFUSED = {
    "--debug-only": "--mlir-print-ir-after-change prints what each pass does; --compilation-log, all that is known",
    "--inline": "the functions of a model are called where several devices compute; a model for one has no calls",
    "--emit-bytecode": "modules are written as text: there is no bytecode",
    "--load-dialect-plugin": "packages bring dialects, by the entry point xdsl.universe",
    "--mlir-print-stacktrace-on-diagnostic": "--debug prints the traceback behind an error",
    "--output-split-marker": "pieces are divided by '// -----', in output as in input",
    "--mlir-print-local-scope": "--print-op-generic prints without aliases",
    "--mlir-pass-pipeline-local-reproducer": "a reproducer is local as it is: it starts where the ladder did",
    "--pass-pipeline-crash-reproducer": "it is called --mlir-pass-pipeline-crash-reproducer",
    "--run-pass": "passes are given by -p a,b or as --a --b",
}
"""Options of mlir-opt that do not exist here → what to use instead."""

SHORT_WITH_VALUES = "fopt"
"""The short options that take a value in the same word, such as `-pcse`."""

DUMPS = tuple(
    f"mlir_print_ir_{when}" for when in ("before", "after", "before_all", "after_all", "after_change", "after_failure")
)
"""The namespace names of the options that dump the IR."""

EXAMPLES = """
glow-opt model.mlir -p canonicalize,sink-transposes
glow-opt model.mlir --assign-target='target=cortex-m4' --canonicalize
glow-opt model.mlir --stop-after=llvm -t llvm -o model.ll
glow-opt model.mlir --pass-pipeline='builtin.module(assign-target{target=avx2},cse)'
glow-opt model.mlir --stop-after=allocated -o allocated.mlir
glow-opt model.mlir --pipeline=optimize --disable-passes=sink-transposes
glow-opt model.mlir --stop-after=allocated --insert-after=stack:my-pass
glow-opt model.mlir --stage optimized --mlir-print-ir-after-change
glow-opt ~/.cache/glow-mlir/reproducers-v1/glow-reproducer-1f2e3d4c.mlir --run-reproducer --debug
cat model.mlir | glow-opt -p cse -o -
"""


def switch(text: str) -> bool:
    """Parse a Boolean option."""
    if (found := truth(text)) is None:
        raise argparse.ArgumentTypeError(f"expected 0 or 1, got '{text}'")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add our options to those of xDSL's driver."""
    parser.prog, parser.description, parser.epilog = "glow-opt", DESCRIPTION, examples_epilog(EXAMPLES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.conflict_handler = "resolve"  # Our options replace xDSL's of the same name.
    give_once(parser)
    parser.allow_abbrev = False  # Plugins and pass flags are matched by their full names.
    # A group copies the conflict handler when it is created; the parser's own options still refuse conflicts.
    add_common_arguments(parser.add_argument_group("about the tool"))
    _add_pipeline(parser.add_argument_group("what to run"))
    _add_diagnostics(parser.add_argument_group("diagnostics"))
    _add_output(parser.add_argument_group("output"))


def _add_pipeline(group: ArgumentGroup) -> None:
    group.add_argument(
        "-p",
        "--passes",
        "--pass-pipeline",
        dest="passes",
        default="",
        metavar="PASSES",
        help="passes to run, as 'a,b{x=1}' or 'builtin.module(a,b{x=1})', after those of --pipeline; each pass is an "
        "option of its own as well: --a --b='x=1'",
    )
    group.add_argument(
        "--load-pass-plugin",
        action="append",
        default=[],
        metavar="FILE.py",
        help="load the passes (classes derived from xdsl.passes.ModulePass) in a file of Python; may be repeated",
    )
    group.add_argument("--list-passes", action="store_true", help="print all passes with their options, and stop")
    group.add_argument("--show-dialects", action="store_true", help="print the names of all dialects, and stop")
    add_ladder_arguments(group)
    group.add_argument("--list-pipelines", action="store_true", help="print all pipelines by stage, and stop")
    group.add_argument("--dump-pass-pipeline", action="store_true", help="print the passes that will run to stderr")
    group.add_argument("--run-reproducer", action="store_true", help="take the options from the header of the input")


def _add_diagnostics(group: ArgumentGroup) -> None:
    group.add_argument(
        "--verify-each", type=switch, default=True, metavar="0|1", help="verify the module after each pass (default: 1)"
    )
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare errors with the `// expected-error {{text}}` comments of the input; for an input without any, "
        "print the error on stdout and succeed, as xdsl-opt does",
    )
    group.add_argument(
        "--xdsl-diagnostics",
        action="store_true",
        help="print errors of parsers, verifiers and passes as xdsl-opt does, and ignore comments that "
        "expect errors: for FileCheck tests of xDSL's dialects and passes",
    )
    _add_dumps(group)
    group.add_argument("--mlir-timing", action="store_true", help="print a table of times to stderr")
    group.add_argument(
        "--mlir-timing-display",
        choices=("list", "tree"),
        default="tree",
        help="each pass once, the longest first, with its sums; or each run, in order (default: tree)",
    )
    for name in ("--mlir-disable-threading", "--mlir-print-ir-module-scope"):
        group.add_argument(name, action="store_true", help="always on; accepted for scripts written for mlir-opt")
    group.add_argument(
        "--mlir-pass-statistics", action="store_true", help="print what passes count, and numbers of ops, to stderr"
    )
    group.add_argument(
        "--mlir-pass-statistics-display",
        choices=("list", "pipeline"),
        default="pipeline",
        help="each pass once, by name, with its sums; or each run, in order (default: pipeline)",
    )
    add_log_arguments(group, "stderr")
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        dest="reproducer",
        metavar="FILE",
        help="write a reproducer for whatever pass fails; without this option, only for a bug in the compiler, into "
        "the cache",
    )


def _add_dumps(group: ArgumentGroup) -> None:
    """Add the options that dump the IR around passes, with and without MLIR's prefix."""
    for name, text in {
        "before": "before these passes",
        "after": "after these passes",
        "before-all": "before every pass",
        "after-all": "after every pass",
        "after-change": "only after passes that change it",
        "after-failure": "as a failing pass left it",
    }.items():
        spellings = (f"--mlir-print-ir-{name}", f"--print-ir-{name}")
        if name in ("before", "after"):
            group.add_argument(
                *spellings, type=names, default=(), metavar="PASSES", help=f"dump the IR to stderr {text}"
            )
        else:
            group.add_argument(*spellings, action="store_true", help=f"dump {text}")
    group.add_argument("--mlir-print-ir-tree-dir", metavar="DIR", help="write dumps into files of this folder instead")


def _add_output(group: ArgumentGroup) -> None:
    group.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="write to FILE, with locations, and its weights beside it; nothing is written if there is an error; "
        "- is stdout",
    )
    group.add_argument(
        "-t",
        "--emit",
        dest="target",
        default="mlir",
        metavar="FORMAT",
        help="output format: mlir, llvm (LLVM IR), or one of xDSL's targets (default: mlir)",
    )
    group.add_argument(
        "--print-op-generic", "--mlir-print-op-generic", action="store_true", help="print the generic form of ops"
    )
    group.add_argument(
        "--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations on stdout too"
    )
    group.add_argument(
        "--mlir-elide-elementsattrs-if-larger",
        dest="elide",
        type=natural,
        metavar="N",
        help="print dense attributes with more than N elements as dense_resource<__elided__> (default: 16 on a "
        "terminal, else never)",
    )
