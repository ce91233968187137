"""
Options as mlir-opt accepts them.

Passes are options of their own, such as `--canonicalize` or `--assign-target='target=avx2'`, and long options may have
a single dash, such as `-canonicalize` or `-split-input-file`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from glow_mlir.driver.pipelines import available_passes
from glow_mlir.errors import OptionError

_PASSES = ("-p", "--passes", "--pass-pipeline")


def with_two_dashes(arguments: Sequence[str], known: Collection[str], with_values: str) -> list[str]:
    """
    Return the arguments with two dashes in front of each long option that has one.

    `known` holds all options with their dashes. An argument that is not among them starts with a short option;
    `with_values` holds the letters of the short options that may be followed by a value, as in `-pcse`.
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
    """Whether an argument is a single dash followed by more than one character."""
    return len(text) > 2 and text[0] == "-" and text[1].isalpha()


def with_pass_flags(arguments: Sequence[str]) -> list[str]:
    """
    Return the arguments with all pass options merged into one `-p`, in order.

    Raises `OptionError` for several `-p`, or for `-p` together with pass options, because their order would be unclear.
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
    """Whether an argument is the option for a list of passes: `-p`, `-pcse` or `--passes=cse`."""
    return text.split("=")[0] in _PASSES or (text.startswith("-p") and text != "-p")
