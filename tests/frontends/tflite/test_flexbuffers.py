"""Options of custom operators, which are flexbuffers: values of all types, and damaged ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from glow_mlir.errors import ModelError
from glow_mlir.frontends.tflite.flexbuffer import read_flexbuffer

VALUES: dict[bytes, Any] = {
    b"\5\4\1": 5,
    b"\3\1\2\3\4\4\4\6\x28\1": [1, 2, 3],
    b"\0\0P@\x0e\4": 3.25,
    b"\5hello\0\6\x14\1": "hello",
    b"epsilon\0\1\t\0\0\3\0\0\0\1\0\0\0\1\0\0\0\0\0\0\x3e\x0e\5\x26\1": {"epsilon": 0.125},
}
"""What the Python package of FlatBuffers writes → the value."""


@pytest.mark.parametrize("data", VALUES)
def test_values(data: bytes) -> None:
    assert read_flexbuffer(data, "n") == VALUES[data]


def test_what_the_package_writes_is_read() -> None:
    flexbuffers: Any = pytest.importorskip("flatbuffers.flexbuffers")
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.IndirectFloat("indirect", 1.5)
        builder.TypedVectorFromElements("typed", [1.0, 2.0, 3.0])
        builder.FixedTypedVectorFromElements("fixed", [1, 2, 3])
        builder.Blob("blob", b"ab\0")
        builder.Bool("bool", True)
        builder.VectorFromElements("mixed", [1, "x", -70000, [2.5]])
        builder.Null("null")
    assert read_flexbuffer(bytes(builder.Finish()), "n") == {
        "indirect": 1.5,
        "typed": [1.0, 2.0, 3.0],
        "fixed": [1, 2, 3],
        "blob": b"ab\0",
        "bool": True,
        "mixed": [1, "x", -70000, [2.5]],
        "null": None,
    }


@pytest.mark.parametrize("data", [b"", b"\1", b"\0\x28\1", b"\1\1\x28\1"])
def test_damaged_ones_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match="its options are damaged"):
        read_flexbuffer(data, "n")


@pytest.mark.parametrize("data", VALUES)
def test_mutants_are_read_or_refused(data: bytes) -> None:
    choose, refused = random.Random(0), 0
    for _ in range(200):
        mutant = bytearray(data)
        mutant[choose.randrange(len(data))] = choose.choice((0, 1, 255, choose.randrange(256)))
        try:
            read_flexbuffer(bytes(mutant), "n")
        except ModelError:
            refused += 1
    assert refused
