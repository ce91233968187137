"""Mutants of programs of StableHLO, as text and as bytecode: each is read, or ends in one clean error, soon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from filecheck_runner import FILECHECK_ROOT
from fuzzing import Fuzzer

from glow_mlir.errors import GlowError
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.ir.text import module_text

FOLDER = FILECHECK_ROOT / "dialects" / "stablehlo"

WORDS = (
    '1152921504606846976 -1 ( ) [ ] { } < > %0 dense<0.0> tensor<1152921504606846976xf32> #loc loc( ? x 0x , : @ \\ " '
    "stablehlo.add !stablehlo.token f8E4M3FN i4 complex<f32> 99999999999999999999"
).split()
"""Words that are put into text."""

_WORD = re.compile(r"\d+|[a-zA-Z]+|[^\w\s]")


@cache
def functions() -> Sequence[str]:
    """The functions of the FileCheck files, in the readable form and in the generic one."""
    found: list[str] = []
    for path in sorted(FOLDER.glob("[!l]*[!d].mlir")):  # Neither locations nor invalid programs.
        text = "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("//"))
        for each in text.split("\n\n"):
            if each.strip() and "@identity" not in each and "@nothing" not in each:
                found += [each, module_text(read_stablehlo(each.encode()), generic=True)]
    return found


def mutant(seed: int) -> str:
    """A function with a few words exchanged, left out, repeated or replaced."""
    random = Random(seed)
    text = random.choice(functions())
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        words = list(_WORD.finditer(text))
        if not words:
            break
        at = random.choice(words)
        alike = [word.group() for word in words if word.group()[0].isdigit() == at.group()[0].isdigit()]
        new = random.choice((*random.choices(alike, k=4), random.choice(words).group(), "", random.choice(WORDS)))
        text = text[: at.start()] + new + text[at.end() :]
    return text


@cache
def bytecode() -> bytes:
    """Bytecode of the functions with the elementwise operations, which jaxlib makes."""
    stablehlo: Any = import_module("jaxlib.mlir.dialects.stablehlo")
    text = (FOLDER / "elementwise.mlir").read_text(encoding="utf-8")
    return stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version())


def bytecode_mutant(seed: int) -> bytes:
    """Bytecode with a few bytes changed, left out or repeated."""
    random = Random(seed)
    data = bytearray(bytecode())
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(data))
        kind = random.randrange(4)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at : at + random.randrange(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + random.randrange(1, 40)]
        else:
            data[at] ^= 1 << random.randrange(8)
    return bytes(data)


def _check(data: bytes) -> None:
    found: GlowError | None = None
    try:
        read_stablehlo(data)
    except GlowError as error:
        found = error
    assert found is None or found.file
    assert found is None or "\n" not in found.reason


STAGES = {
    "text": Fuzzer(lambda seed: _check(mutant(seed).encode()), functions, mutant),
    "bytecode": Fuzzer(lambda seed: _check(bytecode_mutant(seed)), bytecode),
}
