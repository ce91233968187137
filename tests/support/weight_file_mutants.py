"""
Mutants of weight files beside their text: bytes that a disk or a hand has changed, and arrays that somebody wrote under
the digests of others. Each ends in one clean error, or in code that computes what the interpreter does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock
from weakref import WeakValueDictionary

from fuzzing import Fuzzer
from mutant_programs import all_texts
from mutants import LADDER, MAX_CHARACTERS, check_module, is_clean
from mutations import STORED, changed_weights

from glow_mlir.constants import weights as store
from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.weights import Digest, known_digest, write_weights
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import read_module, weights_path

STAGES_OF_FILES = [stage for stage in LADDER if stage != "llvm"]


@contextmanager
def _other_store() -> Generator[None]:
    """A weight store without what this process has."""
    with mock.patch.object(store, "_STORE", WeakValueDictionary[str, Deferred]()):
        yield


def _write(text: str, path: Path, random: Random) -> None:
    """Write a program, and weights of which one array may be another than its digest says; or change some bytes."""
    found = [digest for word in text.split('"') if (digest := known_digest(word)) is not None]
    arrays = {str(digest): digest.weights.array() for digest in found}
    plain = sorted({digest for digest in STORED.findall(text) if digest in arrays})
    is_forged = bool(plain) and random.random() < 0.5
    if is_forged:
        name = random.choice(plain)
        arrays[name] = changed_weights(arrays[name], random)
    with _other_store():
        kept = [_put(name, Stored(array)) for name, array in arrays.items()]
        write_weights(weights_path(path), kept)
    path.write_text(text, encoding="utf-8")
    if not is_forged:
        _damage(weights_path(path), random)


def _put(name: str, array: Stored) -> Digest:
    """The digest of that name, which the store keeps an array under."""
    digest = Digest(name)
    digest.weights = array
    store._STORE[name] = array  # pyright: ignore[reportPrivateUsage]
    return digest


def _damage(path: Path, random: Random) -> None:
    """Change a few bytes, or a number of the header, or cut the file."""
    data = bytearray(path.read_bytes())
    header = int.from_bytes(data[:8], "little")
    kind = random.choice(("byte", "byte", "header", "number", "cut"))
    if kind == "cut":
        del data[random.randrange(len(data)) :]
    elif kind == "number":
        at = random.randrange(8)
        data[at] = random.randrange(256)
    else:
        end = 8 + header if kind == "header" else len(data)
        for _ in range(random.choice((1, 1, 4))):
            data[random.randrange(8, end)] = random.choice((*b"0123456789[]{},-", random.randrange(256)))
    path.write_bytes(bytes(data))


def check(seed: int) -> bool:
    """Whether a mutant is accepted; raises where it is neither refused cleanly nor computes what it says."""
    random = Random(f"weights {seed}")
    texts = [texts[random.choice(STAGES_OF_FILES)] for texts in all_texts()]
    texts = [text for text in texts if len(text) <= MAX_CHARACTERS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.mlir"
        _write(random.choice(texts), path, random)

        def run() -> None:
            with _other_store():
                check_module(read_module(path, new_context(), in_memory=bool(seed % 3)), bool(seed % 2))

        return is_clean(run)


STAGES: Mapping[str, Fuzzer] = {"": Fuzzer(check, prepare=all_texts)}
"""The fuzzer of weight files."""
