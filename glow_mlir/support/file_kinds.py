"""Recognize files given by mistake from their first bytes, so that errors can say what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from glow_mlir.support.dataclass import dataclass

GENAI = "genai_config.json"
"""The file that describes a folder of onnxruntime-genai."""

TFLITE = ".tflite"
"""The suffix of files of TensorFlow Lite."""

EXPORTED = ".pt2"
"""The suffix of files of `torch.export.save`."""

PROGRAMS = (".mlir", ".mlirbc", ".stablehlo", ".jax_export")
"""The suffixes of files that may hold a program of StableHLO."""

BYTECODE = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""

_STABLEHLO = re.compile(rb'"?\b(?:stablehlo|chlo)\.[a-z_]|\bmhlo\.num_partitions\b|\bjax\.uses_shape_polymorphism\b')
"""What only programs of StableHLO have."""

_OTHER_DIALECTS = re.compile(rb"\bglow_(?:high|low)\.[a-z]")
"""What only modules of other dialects have."""

BEGINNING = 1 << 20
"""The number of bytes in which a program of StableHLO is recognized."""

NEAR = 4096
"""The number of bytes that are examined."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: its first bytes, its description, and a hint."""

    start: bytes
    name: str
    hint: str
    offset: int = 0
    """The offset of `start` in the file."""
    mark: bytes = b""
    """Further bytes near the beginning."""
    is_text: bool = False
    """Whether it is text that cannot begin an MLIR module."""

    def fits(self, data: bytes) -> bool:
        """Whether those bytes begin a file of this kind."""
        return data.startswith(self.start, self.offset) and self.mark in data[:NEAR]


_ARRAYS = "glow-run MODEL --inputs FILE.npz --input NAME=FILE.npy runs a model on arrays"
_LINKED = "objects are linked into C programs (docs/bundles.md); glow_mlir.load_bundle runs a bundle"
_EXPORT = "it has to be exported to ONNX first"
_SOURCE = "export the model that it was made of to ONNX, as by torch.onnx.export"
_KERAS = "keras.models.load_model(FILE).export('model.onnx', format='onnx') writes ONNX"
_PROGRAM = f"a file of this kind is called {EXPORTED}; glow_mlir.from_torch takes what torch.export.load gives"
_PAGE = "the download gave a page: take the link of the file itself"

ONNX = Kind(b"\x08", "an ONNX model", "glow-run FILE takes it as it is, glow-import FILE makes a .mlir file of it")
TEXT = Kind(b"", "text", "a module as text is a file called .mlir, which glow-run and glow-opt take")

ARCHIVE = Kind(b"PK\3\4", "a ZIP archive", "unpack it first")
_GGUF = Kind(b"GGUF", "a GGUF model, a decoder of text", "glow-generate FILE --chat TEXT answers with it")
_EXECUTORCH = Kind(b"ET12", "an ExecuTorch program", _SOURCE, offset=4)
_OPENVINO = Kind(b"<?xml", "an OpenVINO model", _SOURCE, mark=b"<net", is_text=True)
_KERAS_3 = Kind(b"PK\3\4", "a Keras model", _KERAS, mark=b"model.weights.h5")
_EXPORTED = Kind(b"PK\3\4", "a program of torch.export", _PROGRAM, mark=b"archive_format")
_TFLITE = Kind(b"TFL3", "a TensorFlow Lite model", f"a file of this kind is called {TFLITE}", offset=4)
_HDF5 = Kind(b"\x89HDF", "an HDF5 file", _EXPORT)

KINDS = (
    Kind(b"\x7fELF", "an object or program (ELF)", _LINKED),
    Kind(b"\xcf\xfa\xed\xfe", "an object or program (Mach-O)", _LINKED),
    Kind(b"\0asm", "an object or program (WebAssembly)", _LINKED),
    Kind(b"!<arch>\n", "a library of objects", _LINKED),
    _KERAS_3,
    Kind(b"PK\3\4", "a Keras model", _KERAS, mark=b'"keras_version"'),
    _EXPORTED,
    Kind(b"PK\3\4", "a program of torch.export", _PROGRAM, mark=b"serialized_exported_program"),
    Kind(b"PK\3\4", "a PyTorch file", "torch.onnx.export writes ONNX", mark=b"data.pkl"),
    Kind(b"PK\3\4", "a .npz file of arrays", _ARRAYS, mark=b".npy"),
    ARCHIVE,
    Kind(b"PK\5\6", "a ZIP archive without files", ""),
    Kind(b"\x93NUMPY", "a .npy file of one array", _ARRAYS),
    Kind(b'{"', "a file of weights", "give the .mlir file beside it, which refers to it", offset=8),
    Kind(b"\xff\xfe", "text in UTF-16", "save it in UTF-8"),
    Kind(b"\xfe\xff", "text in UTF-16", "save it in UTF-8"),
    Kind(BYTECODE, "bytecode of MLIR", "mlir-opt FILE prints it as text"),
    Kind(b"BC\xc0\xde", "bitcode of LLVM", "the ladder ends there: glow-opt --stop-after=llvm -t llvm"),
    Kind(b"\x1f\x8b", "compressed (gzip)", "gunzip FILE unpacks it"),
    _TFLITE,
    _HDF5,
    _GGUF,
    _EXECUTORCH,
    Kind(b"FT01", "weights of an ExecuTorch program", _SOURCE, offset=4),
    _OPENVINO,
    Kind(b"<net ", "an OpenVINO model", _SOURCE, is_text=True),
    Kind(
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS, in the place of the file",
        "git lfs pull fetches the file",
        is_text=True,
    ),
    Kind(b"<!DOCTYPE html", "a web page", _PAGE, is_text=True),
    Kind(b"<!doctype html", "a web page", _PAGE, is_text=True),
    Kind(b"<html", "a web page", _PAGE, is_text=True),
    Kind(b"\x80", "a file of Python's pickle", _EXPORT),
    ONNX,
)


BY_SUFFIX: Mapping[str, Kind] = {
    ".caffemodel": Kind(b"", "a Caffe model", _EXPORT),
    ".engine": Kind(b"", "an engine of TensorRT", _SOURCE),
    ".gguf": _GGUF,
    ".h5": _HDF5,
    ".keras": _KERAS_3,
    ".mlmodel": Kind(b"", "a Core ML model", _SOURCE),
    ".mnn": Kind(b"", "an MNN model", _SOURCE),
    ".pdmodel": Kind(b"", "a PaddlePaddle model", "paddle2onnx writes ONNX"),
    ".prototxt": Kind(b"", "a Caffe model", _EXPORT),
    ".pt2": _EXPORTED,
    ".pte": _EXECUTORCH,
    ".xml": _OPENVINO,
}
"""Suffix of a file name → its kind, if the first bytes do not tell more."""


def kind_of(data: bytes, file: str = "") -> Kind | None:
    """The kind of a file with these first bytes; `None` if neither they nor its name tell."""
    found = next((kind for kind in KINDS if kind.fits(data)), None)
    suffix = PurePath(file).suffix
    if found is None and data and suffix == ".onnx":
        return ONNX
    if found in (None, ONNX, ARCHIVE) and data and suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    return TEXT if found is None and _is_text(data) else found


def kind_of_file(path: Path) -> Kind | None:
    """The kind of a file by its first bytes; `None` if unknown or unreadable."""
    try:
        with path.open("rb") as file:
            return kind_of(file.read(NEAR), str(path))
    except OSError:
        return None


def is_tflite(data: bytes) -> bool:
    """Whether those bytes begin a model of TensorFlow Lite."""
    return _TFLITE.fits(data)


def is_stablehlo(data: bytes) -> bool:
    """Whether bytes begin a program of StableHLO: as text, as bytecode, or in a file of `jax.export`."""
    if data.startswith(BYTECODE):
        return True
    if b"\0" in data[:64]:
        return BYTECODE in data[:BEGINNING]
    begin = data[:BEGINNING]
    return _STABLEHLO.search(begin) is not None and _OTHER_DIALECTS.search(begin) is None


def _is_text(data: bytes) -> bool:
    """Whether those bytes are letters and lines."""
    return bool(data) and all(byte >= 32 or byte in b"\t\n\r" for byte in data) and data[:1].isascii()


def is_decoder(path: Path) -> bool:
    """
    Whether a path is a decoder or an encoder of text: a GGUF file, or a folder of a checkpoint or of onnxruntime-genai.

    Folders have `config.json` and `.safetensors`, `modules.json` of sentence-transformers, or `genai_config.json`.
    """
    if path.is_dir():
        is_checkpoint = (path / "config.json").is_file() and any(path.glob("*.safetensors"))
        return is_checkpoint or any((path / name).is_file() for name in ("modules.json", GENAI))
    return path.is_file() and kind_of_file(path) is _GGUF
