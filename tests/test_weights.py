"""The weight store: digests of content and of recipes, and how long it keeps an array."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from validation import validate

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.weights import MIN_DEFERRED, add_weights, read_weights, weights
from glow_mlir.errors import ModelError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import digests, parse_module, read_module, write_module

LARGE = MIN_DEFERRED // 4

TRANSPOSED = """
glow_high.constant @c : tensor<32x32x32xf32> {{weights = "{digest}"}}
glow_high.placeholder @y : tensor<32x32x32xf32> {{output}}
glow_high.placeholder @z : tensor<32x32x32xf32> {{output}}
glow_high.func @main(@y, @z) {{
  %c = glow_high.get @c : tensor<32x32x32xf32>
  %a = glow_high.transpose %c {{permutation = [1, 2, 0]}} : tensor<32x32x32xf32>
  %b = glow_high.transpose %c {{permutation = [2, 1, 0]}} : tensor<32x32x32xf32>
  glow_high.save %a, @y
  glow_high.save %b, @z
}}
"""
"""One constant in two orders, of one shape."""

SCALED = """
glow_high.placeholder @x : tensor<160x160xf32> {{input}}
glow_high.constant @c : tensor<160x160xf32> {{weights = "{digest}"}}
glow_high.constant @f : tensor<160xf32> {{weights = "{first}"}}
glow_high.constant @g : tensor<160xf32> {{weights = "{second}"}}
glow_high.placeholder @y : tensor<160x160xf32> {{output}}
glow_high.placeholder @z : tensor<160x160xf32> {{output}}
glow_high.placeholder @w : tensor<160x160xf32> {{output}}
glow_high.func @main(@x, @y, @z, @w) {{
  %x = glow_high.get @x : tensor<160x160xf32>
  %c = glow_high.get @c : tensor<160x160xf32>
  %f = glow_high.get @f : tensor<160xf32>
  %g = glow_high.get @g : tensor<160xf32>
  %0 = glow_high.matmul %x, %c : tensor<160x160xf32>
  %1 = glow_high.mul %0, %f : tensor<160x160xf32>
  %2 = glow_high.matmul %x, %c : tensor<160x160xf32>
  %3 = glow_high.mul %2, %g : tensor<160x160xf32>
  %4 = glow_high.mul %x, %f : tensor<160x160xf32>
  %5 = glow_high.matmul %4, %c : tensor<160x160xf32>
  glow_high.save %1, @y
  glow_high.save %3, @z
  glow_high.save %5, @w
}}
"""
"""One constant times two vectors, and times one of them along its other axis."""


def made(recipe: str, array: np.ndarray) -> Deferred:
    return Stored(array, recipe)


def test_large_arrays_are_known_by_their_recipes() -> None:
    array = np.arange(LARGE, dtype=np.float32)
    by_recipe = add_weights(made("sum a b", array))
    assert by_recipe == add_weights(made("sum a b", array.copy()))
    assert by_recipe != add_weights(made("sum b a", array))
    assert by_recipe != add_weights(array)
    assert by_recipe != add_weights(made("sum a b", array.reshape(2, -1)))
    assert by_recipe != add_weights(made("sum a b", array.view(np.int32)))
    np.testing.assert_array_equal(weights(by_recipe), array)


def test_small_arrays_are_known_by_their_content() -> None:
    array = np.arange(LARGE - 1, dtype=np.float32)
    assert add_weights(made("sum a b", array)) == add_weights(made("sum b a", array)) == add_weights(array)


@pytest.mark.parametrize(
    ("text", "shape", "name"),
    [(TRANSPOSED, (32, 32, 32), "fold-constants"), (SCALED, (160, 160), "fold-into-weights")],
)
def test_recipes_leave_nothing_out(text: str, shape: tuple[int, ...], name: str) -> None:
    """What is made of one constant in several ways is not taken for the same."""
    random = np.random.default_rng(0)
    vectors = random.uniform(1, 2, (2, shape[0])).astype(np.float32)
    digest, first, second = map(add_weights, (random.normal(size=shape).astype(np.float32), *vectors))
    module = parse_module(text.format(digest=digest, first=first, second=second), new_context())
    inputs = {"x": np.eye(160, dtype=np.float32)} if "@x" in text else {}
    validate(module, name, inputs, rtol=1e-6)
    assert not any(op.name in ("glow_high.transpose", "glow_high.mul") for op in module.walk())


def test_weights_live_as_long_as_a_module_or_digest() -> None:
    array = np.random.default_rng(1).normal(size=(32, 32, 32)).astype(np.float32)
    digest = add_weights(array)
    name = str.__str__(digest) + ""
    module = parse_module(TRANSPOSED.format(digest=digest), new_context())
    del digest
    np.testing.assert_array_equal(weights(name), array)
    copy = module.clone()
    del module
    gc.collect()
    np.testing.assert_array_equal(weights(name), array)
    del copy
    gc.collect()
    with pytest.raises(ModelError, match="not loaded"):
        weights(name)


def weight_file(path: Path, header: bytes, content: bytes = b"") -> Path:
    """A weight file with that header."""
    path.write_bytes(len(header).to_bytes(8, "little") + header + content)
    return path


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"d": 5}',
        b'{"d": {"dtype": "F32", "shape": [3]}}',
        b'{"d": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}',
        b'{"__metadata__": {"d": "crc32:0"}, "d": {"dtype": "F33", "shape": [3], "data_offsets": [0, 12]}}',
        b'{"__metadata__": {"d": "crc32:0"}, "d": {"dtype": "F32", "shape": [3], "data_offsets": [0, 99]}}',
        b'{"__metadata__": {"d": "crc32:0"}, "d": {"dtype": "F32", "shape": [3], "data_offsets": [0, null]}}',
        b'{"__metadata__": {"d": "crc32:0"}, "d": {"dtype": "F32", "shape": 3.5, "data_offsets": [0, 12]}}',
    ],
)
def test_damaged_weight_file_is_refused(header: bytes, in_memory: bool, tmp_path: Path) -> None:
    path = weight_file(tmp_path / "m.weights", header, bytes(12))
    with pytest.raises(ModelError, match=r"m\.weights: the weight file cannot be read: .* \(hint: "):
        read_weights(path, in_memory)


@pytest.mark.parametrize("header", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_no_weight_file_is_told_in_words(header: bytes, tmp_path: Path) -> None:
    path = weight_file(tmp_path / "m.weights", header, bytes(12))
    with pytest.raises(ModelError, match="its header is damaged, or it is a file of another kind"):
        read_weights(path)


@pytest.mark.parametrize("kind", ["F32", "I32"])
def test_weights_of_another_type_are_refused(kind: str, tmp_path: Path) -> None:
    """A module does not read behind the end of its weights."""
    (tmp_path / "m.mlir").write_text('glow_high.constant @w : tensor<20xf32> {weights = "sha256:5"}')
    count = 3 if kind == "F32" else 20
    entry = {"dtype": kind, "shape": [count], "data_offsets": [0, 4 * count]}
    header = json.dumps({"__metadata__": {"sha256:5": "crc32:0"}, "sha256:5": entry})
    weight_file(tmp_path / "m.weights", header.encode(), bytes(80))
    with pytest.raises(ModelError, match=r"m\.weights: node 'w': weights sha256:5 are .*, not float32\[20\] \(hint: "):
        read_module(tmp_path / "m.mlir", new_context())


def module_with_weights(folder: Path) -> tuple[Path, Path]:
    """A module of two constants, one known by its content, one by how it was made; and its weight file."""
    random = np.random.default_rng(0)
    small = add_weights(random.normal(size=40).astype(np.float32))
    large = add_weights(made("sum a b", random.normal(size=LARGE).astype(np.float32)))
    constants = [f'glow_high.constant @small : tensor<40xf32> {{weights = "{small}"}}']
    constants += [f'glow_high.constant @large : tensor<{LARGE}xf32> {{weights = "{large}"}}']
    write_module(parse_module("\n".join(constants), new_context()), folder / "m.mlir")
    return folder / "m.mlir", folder / "m.weights"


@pytest.fixture
def young_heap() -> Iterator[None]:
    """What other tests left is not looked through each time that memory is collected."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("in_memory", [False, True])
def test_flipped_bits_are_found(in_memory: bool, tmp_path: Path) -> None:
    """Any bit of an element, and of the header: one line that names file and, where it can, the constant."""
    module, file = module_with_weights(tmp_path)
    gc.collect()
    whole = file.read_bytes()
    read_module(module, new_context(), in_memory)
    size = 8 + int.from_bytes(whole[:8], "little")
    random = np.random.default_rng(0)
    body = [*random.integers(size, size + 160, 5), *random.integers(size + 192, len(whole), 5), len(whole) - 1]
    for position in (*body, *random.integers(0, len(whole[:size].rstrip()), 12)):
        data = bytearray(whole)
        data[position] ^= 1 << random.integers(8)
        file.write_bytes(data)
        line = refusal(module, in_memory)
        assert str(file) in line or "are not loaded" in line
        if position >= size:
            symbol = "small" if position < size + 160 else "large"
            assert f"{file}: node '{symbol}': weights sha256:" in line
            assert "are damaged (hint: " in line


def refusal(path: Path, in_memory: bool) -> str:
    """The error of a module whose weights are all asked for; behind it nothing holds them."""
    gc.collect()
    try:
        for digest in digests(read_module(path, new_context(), in_memory)):
            weights(digest)
    except ModelError as error:
        return str(error)
    raise AssertionError("the damage was not found")


def test_intact_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    module, file = module_with_weights(tmp_path)
    gc.collect()
    before = file.read_bytes()
    write_module(read_module(module, new_context()), tmp_path / "again.mlir")
    assert (tmp_path / "again.weights").read_bytes() == before


def test_unused_weights_are_not_looked_at(tmp_path: Path) -> None:
    module, file = module_with_weights(tmp_path)
    gc.collect()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    module.write_text("builtin.module {}")
    read_module(module, new_context())
