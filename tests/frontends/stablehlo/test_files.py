"""Files of StableHLO: text, bytecode, and files of `jax.export`; damaged ones end in one line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filecheck_runner import FILECHECK_ROOT
from stablehlo_mutants import STAGES, bytecode

from glow_mlir.errors import GlowError, ModelError, OptionError, OutOfMemoryError, ParseFailure
from glow_mlir.frontends.stablehlo import bytecode as reader
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.ir.text import module_text
from glow_mlir.support.file_kinds import is_stablehlo

FUNCTION = """
func.func public @main(%x: tensor<2xf32> loc("input")) -> tensor<2xf32> {{
  %0 = stablehlo.constant {} : tensor<{}> loc("weights")
  return %x : tensor<2xf32>
}}
"""


def value_of(content: str, type_: str) -> bytes:
    module = read_stablehlo(FUNCTION.format(content, type_).encode())
    (op,) = (op for op in module.walk() if op.name == "stablehlo.constant")
    value: Any = op.properties["value"]
    return value.data.data


@pytest.mark.parametrize(
    ("content", "type_", "expected"),
    [
        ('dense<"0x0000803F00000040">', "2xf32", np.array([1, 2], "<f4").tobytes()),
        ('dense<"0x0000803F">', "3xf32", np.ones(3, "<f4").tobytes()),
        ("dense<0x7F800000>", "f32", np.array(np.inf, "<f4").tobytes()),
        ("dense<[0xFF800000, -0.0]>", "2xf32", np.array([-np.inf, -0.0], "<f4").tobytes()),
        ("dense<0xFF80>", "2xbf16", b"\x80\xff\x80\xff"),
        ("dense<(0x7F800000, 1.0)>", "complex<f32>", np.array(complex(np.inf, 1), "<c8").tobytes()),
        ('dense<"0x0E">', "2xi4", b"\xfe\xfe"),
        ('dense<"0x010E">', "2xui4", b"\x01\x0e"),
        ('dense<"0x010001">', "3xi1", b"\xff\x00\xff"),
        ('dense<"0x0502">', "10xi1", b"\xff\x00\xff\x00\x00\x00\x00\x00\x00\xff"),
        ('dense<"0x">', "0xf32", b""),
    ],
)
def test_constants_are_the_bytes_of_their_elements(content: str, type_: str, expected: bytes) -> None:
    assert value_of(content, type_) == expected


@pytest.mark.parametrize(
    ("content", "type_", "reason"),
    [
        ('dense<"0x0000803F00">', "2xf32", "Shape mismatch in dense literal"),
        ('dense<"0x0000G03F">', "1xf32", "Hex string in denseAttr is invalid"),
        ('dense<"0000803F">', "1xf32", "Hex string in denseAttr is invalid"),
        ("dense<0xFFFFFFFFFF>", "f32", "0xFFFFFFFFFF has more bits than f32"),
        ("dense<1.0>", "1xcomplex<f32>", "the number does not fit its type"),
    ],
)
def test_constants_of_the_wrong_size_are_refused(content: str, type_: str, reason: str) -> None:
    with pytest.raises(ParseFailure, match=reason):
        value_of(content, type_)


def test_many_elements_are_written_as_bytes() -> None:
    digits = np.arange(200, dtype="<i4").tobytes().hex().upper()
    text = module_text(read_stablehlo(FUNCTION.format(f'dense<"0x{digits}">', "200xi32").encode()))
    assert f'dense<"0x{digits}"> : tensor<200xi32>' in text
    text = module_text(read_stablehlo(FUNCTION.format("dense<[1.5, 1.5]>", "2xf32").encode()))
    assert "dense<1.500000e+00> : tensor<2xf32>" in text
    text = module_text(read_stablehlo(FUNCTION.format("dense<true>", "200xi1").encode()))
    assert "dense<true> : tensor<200xi1>" in text


@pytest.mark.parametrize(
    ("shape", "dtype", "type_"),
    [((500,), "<f4", "500xf32"), ((3, 1, 170), "<i8", "3x1x170xi64"), ((20, 30), "u1", "20x30xui8")],
)
def test_long_lists_are_the_numbers_of_their_elements(shape: tuple[int, ...], dtype: str, type_: str) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    assert value_of(f"dense<{values.tolist()}>", type_) == values.tobytes()
    with pytest.raises(ParseFailure, match="Shape mismatch in dense literal"):
        value_of(f"dense<{values.reshape(-1, 5).tolist()}>", type_)
    with pytest.raises(ParseFailure, match="inconsistent ranks"):
        value_of(f"dense<{[*values.tolist(), []]}>", type_)
    last = str(values.reshape(-1)[-1].item())
    if dtype != "<f4":
        with pytest.raises(ParseFailure, match="Expected integer value") as caught:
            value_of(f"dense<{values.tolist()}>".replace(f"{last}]", "1.5]"), type_)
        assert caught.value.file.startswith("<stablehlo>:3:")


def test_a_constant_that_no_memory_holds_is_one_line() -> None:
    with pytest.raises(OutOfMemoryError, match="too little memory"):
        value_of("dense<1.0>", "1152921504606846976xf32")


def test_resources_become_constants() -> None:
    text = FUNCTION.format("dense_resource<blob>", "2xf32")
    text += '{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}'
    for _ in range(2):  # Names of resources may be those of other texts.
        module = read_stablehlo(text.encode())
        (op,) = (op for op in module.walk() if op.name == "stablehlo.constant")
        value: Any = op.properties["value"]
        assert value.data.data == np.array([1, 2], "<f4").tobytes()
    left_out = FUNCTION.format("dense_resource<__elided__>", "2xf32").encode()
    assert [module_text(read_stablehlo(left_out)).count("dense_resource") for _ in range(2)] == [1, 1]
    with pytest.raises(ParseFailure, match="the resource 'blob' is no value of tensor<3xf32>"):
        read_stablehlo(text.replace("resource<blob> : tensor<2x", "resource<blob> : tensor<3x").encode())


def test_aliases_of_locations_that_go_in_circles_are_one_line() -> None:
    text = FUNCTION.format("dense<1.0>", "f32").replace('loc("weights")', "loc(#loc1)")
    for ending in ("#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\n", '#loc1 = loc("a"(#loc1))\n', ""):
        with pytest.raises(ParseFailure, match="undefined symbol alias '#loc"):
            read_stablehlo((text + ending).encode())
    chain = "".join(f'#loc{at} = loc("a"(#loc{at + 1}))\n' for at in range(1, 3000)) + '#loc3000 = loc("a")\n'
    with pytest.raises(ParseFailure, match="nested too deep"):
        read_stablehlo((text + chain).encode())


def test_programs_are_told_from_other_modules() -> None:
    assert is_stablehlo(FUNCTION.format("dense<1.0>", "f32").encode())
    assert is_stablehlo(b'"chlo.erf"(%0) : (tensor<f32>) -> tensor<f32>')
    assert is_stablehlo(b"module @jit_f attributes {mhlo.num_partitions = 1 : i32} {}")
    assert is_stablehlo(b"ML\xefR\x0dStableHLO")
    assert not is_stablehlo(b"glow_high.func @main(%x: tensor<2xf32>) {} // as stablehlo.add")
    assert not is_stablehlo(b"\x08\x07\0\0")
    assert not is_stablehlo(b"")
    for path in sorted((FILECHECK_ROOT / "transforms").rglob("*.mlir"))[:100]:
        assert not is_stablehlo(path.read_bytes()), path


def test_other_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is no program of StableHLO, and no file of jax.export"):
        read_stablehlo(b"\0\1\2\3")
    with pytest.raises(ParseFailure, match="cannot be read: No such file"):
        read_stablehlo(tmp_path / "missing.mlir")


def test_a_missing_jaxlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, extra: str, reason: str) -> None:
        raise OptionError(f"{reason}, which is not installed", hint="pip install jax")

    monkeypatch.setattr(reader, "imported", missing)
    with pytest.raises(OptionError, match="bytecode of StableHLO is read by jaxlib, which is not installed"):
        read_stablehlo(b"ML\xefR")


@pytest.mark.extra
def test_bytecode_and_files_of_jax_are_read(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    module = read_stablehlo(bytecode())
    path = FILECHECK_ROOT / "dialects" / "stablehlo" / "elementwise.mlir"
    assert module.is_structurally_equivalent(read_stablehlo(path))
    pytest.importorskip("flatbuffers")
    jax = pytest.importorskip("jax")
    export = import_module("jax.export")
    exported = export.export(jax.jit(lambda x: jax.nn.softmax(x @ x)))(np.ones((4, 4), "f4"))
    file = tmp_path / "softmax.jax_export"
    file.write_bytes(exported.serialize())
    assert is_stablehlo(file.read_bytes())
    found, expected = read_stablehlo(file), read_stablehlo(exported.mlir_module().encode())
    for module in (found, expected):
        (function,) = module.body.block.ops
        function.properties.pop("arg_attrs", None)  # Bytecode has an empty one for each argument.
    assert found.is_structurally_equivalent(expected)
    data = file.read_bytes()
    with pytest.raises(ModelError):
        read_stablehlo(data[: len(data) // 2])


@pytest.mark.extra
def test_bytecode_of_the_future_is_one_line() -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    with pytest.raises(ModelError, match="bytecode version 99 is newer") as caught:
        read_stablehlo(b"ML\xefR" + bytes([99 * 2 + 1]) + bytecode()[5:])
    assert caught.value.hint


@pytest.mark.parametrize("stage", ["text", pytest.param("bytecode", marks=pytest.mark.extra)])
def test_mutants_are_read_or_refused(stage: str) -> None:
    if stage == "bytecode":
        pytest.importorskip("jaxlib.mlir.ir")
    for seed in range(150):
        STAGES[stage].run(seed)


def test_mutants_are_mostly_refused() -> None:
    refused = 0
    for seed in range(100):
        try:
            read_stablehlo(STAGES["text"].show(seed).encode())
        except GlowError:
            refused += 1
    assert 20 < refused < 100
