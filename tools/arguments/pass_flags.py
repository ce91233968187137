"""
Options as mlir-opt takes them.

Passes are options of their own, `--canonicalize`, `--assign-target='target=avx2'`, and one dash stands for two,
`-canonicalize`, `-split-input-file`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from glow_mlir.driver.pipelines import available_passes
from glow_mlir.errors import OptionError

_PASSES = ("-p", "--passes", "--pass-pipeline")


def with_two_dashes(arguments: Sequence[str], known: Collection[str], with_values: str) -> list[str]:
    """
    The arguments with two dashes in front of each long option that has one.

    `known` has all options with their dashes. An argument that is none of them begins with a short option; only those
    whose letters `with_values` has may have a value behind them, as `-pcse`.
    """
    passes = available_passes() if any(_has_one_dash(text) for text in arguments) else {}

    def spelled(text: str) -> str:
        if not _has_one_dash(text):
            return text
        name = text[1:].partition("=")[0]
        is_long = f"--{name}" in known or name in passes or text[1] not in with_values
        return f"-{text}" if is_long else text

    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*map(spelled, arguments[:end]), *arguments[end:]]


def _has_one_dash(text: str) -> bool:
    """Whether an argument has a dash and more than one character behind it."""
    return len(text) > 2 and text[0] == "-" and text[1].isalpha()


def with_pass_flags(arguments: Sequence[str]) -> list[str]:
    """
    The arguments with all passes that are options of their own behind one `-p`, in their order.

    Raises `OptionError` where passes are given by several `-p`, or by one and as options, since it is not clear which
    come first.
    """
    others: list[str] = []
    passes: list[str] = []
    flags = [text for text in arguments if text.startswith("--")]
    known = available_passes() if flags else {}
    for text in arguments:
        name, _, options = text.removeprefix("--").partition("=")
        if text.startswith("--") and name in known:
            passes.append(f"{name}{{{options}}}" if options else name)
        else:
            others.append(text)
    lists = sum(_is_list(text) for text in others)
    if lists > 1:
        raise OptionError("passes are given by several -p", hint="-p a,b runs a, then b")
    if passes and lists:
        flag = passes[0].partition("{")[0]
        raise OptionError(f"passes are given by -p and as --{flag}", hint="one way says which come first")
    return [*others, "-p", ",".join(passes)] if passes else others


def _is_list(text: str) -> bool:
    """Whether an argument is the option for a list of passes, as `-p`, `-pcse` or `--passes=cse`."""
    return text.split("=")[0] in _PASSES or (text.startswith("-p") and text != "-p")
