"""GGUF files: values of the metadata, dequantization, operands of products, and damaged files."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from gguf_files import NUMBERS, QUANTIZED, gguf_bytes, llama_metadata, random_blocks, text, write_gguf

from glow_mlir.constants.deferred import Deferred, Packed, Stored
from glow_mlir.constants.layouts import CodeCells
from glow_mlir.constants.sub_byte_values import pack_dot_groups, unpack_sub_bytes
from glow_mlir.dialects.glow_high.blockwise import FEWEST, WIDTHS
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.decoders.weights import blocks_of
from glow_mlir.frontends.gguf.block_types import BLOCK_TYPES, NONLINEAR
from glow_mlir.frontends.gguf.file import GgufFile


def opened(tmp_path: Path, data: bytes) -> GgufFile:
    (tmp_path / "model.gguf").write_bytes(data)
    return GgufFile.open(tmp_path / "model.gguf")


def test_values_of_all_types_are_read(tmp_path: Path) -> None:
    plain = {0: 200, 1: -5, 2: 60000, 3: -300, 4: 1 << 31, 5: -70000, 6: 0.5, 7: True, 10: 1 << 63, 11: -9, 12: 1e300}
    values: dict[str, Any] = {f"k{kind}": (kind, value) for kind, value in plain.items()}
    values |= {"text": "Ġthe", "texts": ["a", "", "ü"], "nested": (9, (9, [(4, [1, 2]), (8, ["x"])]))}
    for version in (2, 3):
        found = opened(tmp_path, gguf_bytes(values, {}, version)).metadata
        assert {f"k{kind}": value for kind, value in plain.items()}.items() <= found.items()
        assert (found["text"], found["texts"]) == ("Ġthe", ["a", "", "ü"])
        first, second = cast("list[Any]", found["nested"])
        assert (first.tolist(), second) == ([1, 2], ["x"])


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    numbers = np.arange(12, dtype=np.float32).reshape(3, 4)
    file = opened(tmp_path, gguf_bytes({}, {"a": ("F32", (5,), bytes(20)), "b": ("F32", (3, 4), numbers.tobytes())}))
    found = file.tensors["b"].array()
    np.testing.assert_array_equal(found, numbers)
    assert found.base is not None
    assert not found.flags.writeable


def by_hand(kind: str, block: bytes) -> list[np.float32]:
    """The numbers of a block, element by element, from the description of the format."""

    def half(begin: int) -> np.float32:
        return np.float32(np.frombuffer(block[begin : begin + 2], "<f2")[0])

    def nibble(begin: int, index: int) -> int:
        return block[begin + index % 16] >> 4 * (index // 16) & 15

    if kind == "Q4_0":
        return [half(0) * np.float32(nibble(2, index) - 8) for index in range(32)]
    if kind == "Q4_1":
        return [half(0) * np.float32(nibble(4, index)) + half(2) for index in range(32)]
    if kind == "IQ4_NL":
        return [half(0) * np.float32(NONLINEAR[nibble(2, index)]) for index in range(32)]
    if kind == "Q8_0":
        return [half(0) * np.float32(np.int8(np.uint8(value))) for value in block[2:]]
    found: list[np.float32] = []
    for index in range(256):  # Q6_K
        chunk, inner = divmod(index, 128)
        row, column = divmod(inner, 32)
        low = block[64 * chunk + 32 * (row % 2) + column] >> 4 * (row // 2) & 15
        high = block[128 + 32 * chunk + column] >> 2 * row & 3
        scale = half(208) * np.float32(np.int8(np.uint8(block[192 + index // 16])))
        found.append(scale * np.float32((low | high << 4) - 32))
    return found


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "IQ4_NL", "Q6_K"])
def test_blocks_are_dequantized_as_described(kind: str, tmp_path: Path) -> None:
    type_ = BLOCK_TYPES[NUMBERS[kind]]
    data = random_blocks(kind, (2, type_.elements))
    found = opened(tmp_path, gguf_bytes({}, {"w": (kind, (2, type_.elements), data)})).tensors["w"].array()
    wanted = [by_hand(kind, data[begin : begin + type_.nbytes]) for begin in (0, type_.nbytes)]
    np.testing.assert_array_equal(found, np.array(wanted, np.float32))


@pytest.mark.extra
@pytest.mark.parametrize("kind", [*QUANTIZED, "F32", "F16", "BF16"])
def test_dequantization_equals_that_of_ggml(kind: str, tmp_path: Path) -> None:
    quants = pytest.importorskip("gguf.quants")
    number, shape = NUMBERS[kind], (32, 512)
    data = random_blocks(kind, shape)
    tensor = opened(tmp_path, gguf_bytes({}, {"w": (kind, shape, data)})).tensors["w"]
    raw = tensor.raw if kind not in ("F32", "F16") else tensor.array()
    wanted = quants.dequantize(raw, pytest.importorskip("gguf").GGMLQuantizationType(number))
    found = tensor.array().astype(np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), np.asarray(wanted, np.float32).view(np.uint32))


def spread(parameters: Deferred, factors: Deferred | None, depth: int) -> np.ndarray:
    """Parameters of blocks, times their factors, for each element of a row."""
    found = parameters.array().astype(np.float32)
    if factors is not None:
        found = found * np.repeat(factors.array().astype(np.float32), found.shape[1] // factors.shape[1], axis=1)
    return np.repeat(found, depth // found.shape[1], axis=1)


@pytest.mark.parametrize("kind", QUANTIZED)
def test_operands_of_products_represent_the_same_numbers(kind: str, tmp_path: Path) -> None:
    """Also with rows in another order, and in parts."""
    shape = (6, 512)
    tensor = opened(tmp_path, gguf_bytes({}, {"w": (kind, shape, random_blocks(kind, shape))})).tensors["w"]
    order = np.array([5, 0, 3])
    matrix = blocks_of(Stored(tensor.raw), tensor.type, 512, order)
    assert matrix.bits in WIDTHS
    assert matrix.block >= FEWEST
    assert (matrix.rows, matrix.depth) == (3, 512)
    assert matrix.quantized is not None
    assert matrix.scales is not None
    integers = unpack_sub_bytes(
        np.concatenate([matrix.quantized.part(0, row, row + 1) for row in range(3)]), matrix.bits
    )
    middle = 0 if matrix.minima is not None else 1 << matrix.bits - 1
    less = integers.astype(np.float32) - np.float32(middle)
    if matrix.table:
        less = np.array(matrix.table, np.float32)[integers]
    found = less * spread(matrix.scales, matrix.scale_factors, 512)
    if matrix.minima is not None:
        found = found + spread(matrix.minima, matrix.minimum_factors, 512)
    np.testing.assert_array_equal(found, tensor.array()[order])


@pytest.mark.parametrize("kind", QUANTIZED)
@pytest.mark.parametrize("order", [None, np.arange(75)[::-1]], ids=["in_order", "reversed"])
def test_weights_are_packed_from_the_file_as_from_their_bytes(
    kind: str, order: np.ndarray | None, tmp_path: Path
) -> None:
    shape = 75, 512  # The last panel has fewer columns.
    tensor = opened(tmp_path, gguf_bytes({}, {"w": (kind, shape, random_blocks(kind, shape))})).tensors["w"]
    matrix = blocks_of(Stored(tensor.raw), tensor.type, 512, order)
    assert matrix.quantized is not None
    layout = CodeCells(matrix.quantized.shape, 32, matrix.bits)
    found = Packed(matrix.quantized, layout, np.dtype(np.uint8)).array()
    np.testing.assert_array_equal(found, pack_dot_groups(matrix.quantized.array(), matrix.bits, 32))


def header(tensors: int = 0, entries: int = 0, rest: bytes = b"", version: int = 3, magic: bytes = b"GGUF") -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, entries) + rest


def tensor_entry(sizes: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return header(1, 0, text("w") + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset) + bytes(64))


ENTRY = text("k") + struct.pack("<I", 9)
LONG_TEXT = text("k") + struct.pack("<IQ", 8, 1 << 40)
LONG_ITEM = ENTRY + struct.pack("<IQQ", 8, 7, 1 << 60)

DAMAGED = {
    "of another kind": (b"ONNX" + bytes(40), "not a GGUF file"),
    "empty": (b"", "cannot be read"),
    "cut off": (b"GGUF\3\0", "2 are left"),
    "of version 1": (header(version=1), "version 1"),
    "big-endian": (header(version=3 << 24), "big-endian"),
    "endless tensors": (header(1 << 60, 0), "the number of tensors is 1152921504606846976"),
    "endless entries": (header(0, 1 << 63), "the number of entries of the metadata is"),
    "endless key": (header(0, 1, struct.pack("<Q", 1 << 62) + bytes(64)), "the length of a key"),
    "endless text": (header(0, 1, LONG_TEXT + bytes(64)), "'k': the length of a value"),
    "endless array": (header(0, 1, ENTRY + struct.pack("<IQ", 12, 1 << 61) + bytes(64)), "'k': the length of an array"),
    "endless texts": (header(0, 1, LONG_ITEM + bytes(64)), "string 0"),
    "deep arrays": (header(0, 1, text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 40), "nested more than"),
    "a value of no type": (header(0, 1, text("k") + struct.pack("<I", 77) + bytes(64)), "unknown type 77"),
    "one key twice": (header(0, 2, (text("k") + struct.pack("<IB", 0, 1)) * 2), "this key twice"),
    "a key of bytes": (header(0, 1, struct.pack("<Q", 2) + b"\xff\xfe" + bytes(64)), "not in UTF-8"),
    "many axes": (tensor_entry((1,) * 5), "5 axes"),
    "endless sizes": (tensor_entry((1 << 62, 1 << 62)), "takes bytes 0 to"),
    "an offset outside": (tensor_entry((4,), offset=1 << 40), "takes bytes 1099511627776"),
    "a crooked offset": (tensor_entry((4,), offset=3), "no multiple of the alignment"),
    "endless sizes without elements": (tensor_entry((0, 1 << 62, 1 << 62)), "sizes that no array has"),
    "parts of several numbers": (
        header(0, 1, text("split.count") + struct.pack("<IIQII", 9, 4, 2, 2, 2)),
        "the entry is no number of files",
    ),
    "half a block": (tensor_entry((33,), kind=2), "no whole blocks of 32"),
    "a refused type": (tensor_entry((256,), kind=10), "of the type Q2_K are not supported"),
    "an alignment of 0": (header(0, 1, text("general.alignment") + struct.pack("<II", 4, 0)), "power of two"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    data, words = DAMAGED[name]
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        opened(tmp_path, data)
    line = str(caught.value)
    assert words in line
    assert "model.gguf" in line
    assert "\n" not in line


def refusal(tmp_path: Path, data: bytes) -> str:
    """The error for a file; empty if it can be read."""
    try:
        opened(tmp_path, data)
    except GlowError as error:
        return str(error)
    return ""


def test_mutants_of_headers_are_read_or_refused_in_bounded_time(tmp_path: Path) -> None:
    """Four bytes in a row become random, small or large numbers."""
    rng = np.random.default_rng(0)
    tensors = {"w": ("Q4_0", (2, 64), random_blocks("Q4_0", (2, 64))), "v": ("F32", (8,), bytes(32))}
    valid = gguf_bytes({**llama_metadata(), "tokens": ["a", "bc"], "scores": [0.5, 1.0]}, tensors)
    begun = time.process_time()
    lines: list[str] = []
    for _ in range(400):
        data = bytearray(valid[: int(rng.integers(len(valid)))] if rng.random() < 0.1 else valid)
        position = int(rng.integers(max(len(data) - 300, 1)))
        data[position : position + 4] = (bytes(4), b"\xff" * 4, rng.bytes(4), b"\x01\0\0\x80")[int(rng.integers(4))]
        lines.append(refusal(tmp_path, bytes(data)))
    assert not any("\n" in line for line in lines)
    outcomes = len(lines) - lines.count(""), lines.count("")
    assert min(outcomes) > 20
    assert time.process_time() - begun < 20


def test_metadata_of_a_written_file_reads_back(tmp_path: Path) -> None:
    file = GgufFile.open(write_gguf(tmp_path / "small.gguf", llama_metadata(), {}))
    assert file.metadata["llama.attention.head_count"] == 4
    assert file.version == 3


def test_models_in_several_files_have_the_tensors_of_all(tmp_path: Path) -> None:
    parts = [{f"w{number}": ("F32", (2,), np.full(2, number, np.float32).tobytes())} for number in range(3)]
    for number, tensors in enumerate(parts):
        entries = {"split.no": (2, number), "split.count": (2, 3), "split.tensors.count": (5, 3)}
        write_gguf(tmp_path / f"m-{number + 1:05}-of-00003.gguf", entries, tensors)
    file = GgufFile.open(tmp_path / "m-00001-of-00003.gguf")
    assert [tensor.array()[0] for tensor in file.tensors.values()] == [0, 1, 2]
    with pytest.raises(ModelError, match="one of 3 files of a model"):
        GgufFile.open(tmp_path / "m-00002-of-00003.gguf")
    (tmp_path / "m-00003-of-00003.gguf").write_bytes((tmp_path / "m-00002-of-00003.gguf").read_bytes())
    with pytest.raises(ModelError, match="is not part 3"):
        GgufFile.open(tmp_path / "m-00001-of-00003.gguf")
    (tmp_path / "m-00003-of-00003.gguf").unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        GgufFile.open(tmp_path / "m-00001-of-00003.gguf")
