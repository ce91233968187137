"""`--print-completion`: scripts for bash, zsh and fish that complete options, their values, passes and files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.support.optional_packages import imported

SHELLS = ("bash", "zsh", "fish")

FORMATS = ("mlir", "llvm")

MODELS = ("*.onnx", "*.mlir")

FILES: Mapping[str, Sequence[str]] = {
    "model": MODELS,
    "models": MODELS,
    "input_file": ("*.mlir",),
    "test": ("*.mlir", "*.test"),
    "input": ("*.npy",),
    "inputs": ("*.npz",),
    "outputs": ("*.npz",),
    "labels": ("*.npy",),
    "dataset": ("*.npz", "*.npy"),
    "image": ("*.png", "*.jpg", "*.jpeg"),
    "load_profile": ("*.json",),
    "load_configuration": ("*.json",),
    "merge": ("*.json",),
    "trace": ("*.json",),
    "to_onnx": ("*.onnx",),
    "dump_html": ("*.html",),
    "html": ("*.html",),
    "dump_dot": ("*.dot",),
}
"""Option or argument → patterns of the file names it accepts, in addition to folders."""

PASS_LISTS = frozenset({"passes", "disable", "mlir_print_ir_before", "mlir_print_ir_after"})
"""Options that take passes separated by commas."""


class CompletionAction(argparse.Action):
    """Print the completion script of a tool for a shell, and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        print(completions(parser, values))
        parser.exit()


def completions(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of a tool for a shell; raises `OptionError` without the package shtab."""
    shtab = imported("shtab", "tools", "--print-completion needs the package shtab")
    if any(action.dest == "passes" for action in parser._actions):
        _add_passes(parser)
    for action in parser._actions:
        if action.metavar is not None:  # zsh ends the name of an argument at a colon.
            action.metavar = str(action.metavar).replace(":", " ")
        if not action.choices and action.nargs != 0 and (found := _values(action)) is not None:
            action.complete = found  # pyright: ignore[reportAttributeAccessIssue]
    return shtab.complete(parser, shell)


def _add_passes(parser: argparse.ArgumentParser) -> None:
    """Add each pass as an option."""
    from glow_mlir.driver.pipelines import available_passes

    known = parser._option_string_actions
    for name in sorted(available_passes()):
        if f"--{name}" not in known:
            parser.add_argument(f"--{name}", action="store_true", help="a pass")


def _values(action: argparse.Action) -> Any:
    """The completion function of an action; `None` where any text is accepted."""
    import shtab

    if action.dest in FILES:
        return _files(FILES[action.dest])
    if (found := _names(action)) is not None:
        return _words(*found)
    metavar = str(action.metavar or "")
    if "DIR" in metavar:
        return shtab.DIRECTORY
    return shtab.FILE if "FILE" in metavar or "MODEL" in metavar else None


def _files(patterns: Sequence[str]) -> Any:
    """Completion by files whose names match one of the patterns, and by folders."""
    import shtab

    found: Any = shtab.glob(*patterns)
    # zsh parses a single pattern in parentheses as glob qualifiers.
    return {**found, "zsh": f"_files -g '{patterns[0]}'"} if len(patterns) == 1 else found


def _names(action: argparse.Action) -> tuple[Sequence[str], bool] | None:
    """The names that an option accepts, and whether it accepts a comma-separated list."""
    if action.dest in PASS_LISTS:
        from glow_mlir.driver.pipelines import available_passes

        return sorted(available_passes()), True
    options = {
        "--stop-after": _stages,
        "--dot-stage": _stages,
        "--emit": lambda: FORMATS,
        "--verify-each": lambda: ("0", "1"),
        "--target": _targets,
        "--pipeline": _pipelines,
        "--backend": _backends,
    }
    found = next((options[name] for name in action.option_strings if name in options), None)
    return None if found is None else (found(), False)


def _stages() -> Sequence[str]:
    from glow_mlir.backends.interface import get_backend

    return get_backend(DEFAULT_BACKEND).pipeline().stage_names


def _targets() -> list[str]:
    from glow_mlir.backends.interface import get_backend

    named = {name for backend in _backends() for name in get_backend(backend).targets()}
    return ["host", "list", *sorted(named)]


def _pipelines() -> list[str]:
    from glow_mlir.backends.interface import named_pipelines

    return sorted(named_pipelines(None))


def _backends() -> list[str]:
    from glow_mlir.ir.registry import BACKENDS

    return sorted(BACKENDS.all())


def _words(names: Sequence[str], several: bool) -> Mapping[str, Any]:
    """Completion by names; for a comma-separated list, after the last comma."""
    words = " ".join(names)
    function = f"_glow_words_{crc32(words.encode()):x}{'_list' * several}"
    begun = '"${1%"${1##*,}"}"' if several else '""'
    bash = f'{function}() {{ compgen -W "{words}" -P {begun} -- "${{1##*,}}"; }}'
    fish = f"function {function}\n  printf '%s\\n' {words}\nend"
    return {
        "bash": function,
        "zsh": f"_values -s , name {words}" if several else f"({words})",
        "fish": f"(__fish_complete_list , {function})" if several else f"({function})",
        "preamble": {"bash": bash, "fish": fish},
    }
