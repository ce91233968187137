"""Decoders in files: opened, described, and as models for sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import GlowError, ModelError, OptionError
from glow_mlir.frontends.checkpoints.folder import CONFIG, CheckpointFolder
from glow_mlir.frontends.decoders.adapters import Adapter
from glow_mlir.frontends.decoders.checkpoint_config import checkpoint_config
from glow_mlir.frontends.decoders.config import DecoderConfig
from glow_mlir.frontends.decoders.families import Family
from glow_mlir.frontends.decoders.gguf_config import gguf_config
from glow_mlir.frontends.decoders.weights import CheckpointWeights, GgufWeights, Weights
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.options.generation import CACHES
from glow_mlir.runtime.identity import ContentIndex, file_identity
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

RESULTS = ("logits", "hidden")
"""The outputs that a program may have."""

LABELS = ("rows", "sequences", "pages", "outputs")
"""The free dimensions of a program."""


@dataclass(frozen=True)
class DecoderModel:
    """A decoder in a GGUF file or in a folder of a checkpoint; `context` limits sequences to less than it can."""

    path: Path
    source: GgufFile | CheckpointFolder
    context: int | None = None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The entries of the GGUF file, or of `config.json`."""
        return self.source.metadata if isinstance(self.source, GgufFile) else self.source.config

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it consists of, without tokenizer."""
        return self.source.paths if isinstance(self.source, GgufFile) else (self.path / CONFIG, *self.source.files)

    @property
    def config(self) -> DecoderConfig:
        """Its description; raises `ModelError` and `UnsupportedError`, which name the file."""
        return self._described[1]

    @cached_property
    def _described(self) -> tuple[Family, DecoderConfig]:
        """Family and description."""
        if isinstance(self.source, GgufFile):
            return gguf_config(self.source, self.context)
        return checkpoint_config(self.path / CONFIG, self.source.config, self.context)

    def weights(self, origin: str) -> Weights:
        """Its weights; `origin` identifies the content of its files."""
        (family, config), source = self._described, self.source
        if isinstance(source, GgufFile):
            return GgufWeights(source, family, config, origin)
        return CheckpointWeights(str(self.path), source.tensors, family, config, origin)

    def origin(self, by_content: bool) -> str:
        """The digests of its files, or only their identities, which are known without reading them."""
        index = ContentIndex()
        return str([index.digest(path) if by_content else (str(path), file_identity(path)) for path in self.files])

    def program(
        self,
        *,
        pages: int,
        rows: int = 512,
        outputs: int = 1,
        sequences: int = 1,
        page: int = 64,
        cache: str = "float16",
        left_bits: int | None = None,
        result: str = "logits",
        adapters: Sequence[Adapter] = (),
    ) -> DecoderProgram:
        """
        A model for `InferenceSession` of calls with up to `rows` tokens of up to `sequences` sequences.

        - `outputs`: the maximum number of rows of which logits are wanted.
        - `pages`: the number of pages of `page` tokens for keys and values of type `cache`.
        - `left_bits`: bits to which rows are rounded in front of quantized weights: 15 (default), 8, or 0 for none.
        - `result`: the output: `logits` [outputs, vocabulary], or `hidden` [outputs, width], the rows behind the last
          norm, for embeddings.
        - `adapters`: low-rank adapters; the input `adapters` [rows] has the number of each row's from 1 on, or 0.

        Raises `OptionError` for values out of range.
        """
        sizes = {"pages": pages, "rows": rows, "outputs": outputs, "sequences": sequences, "page": page}
        for name, size in sizes.items():
            if size < 1:
                raise OptionError(f"{name} must be at least 1, not {size}")
        if cache not in CACHES:
            raise OptionError(f"the cache cannot be of '{cache}'", hint=f"types are {', '.join(CACHES)}")
        if result not in RESULTS:
            raise OptionError(f"a decoder has no result '{result}'", hint=f"results are {', '.join(RESULTS)}")
        bits = 15 if left_bits is None else left_bits
        return DecoderProgram(self, pages, rows, outputs, sequences, page, cache, bits, result, tuple(adapters))


@dataclass(frozen=True)
class DecoderProgram:
    """A decoder for calls of bounded sizes, as a model for sessions; see `DecoderModel.program`."""

    decoder: DecoderModel
    pages: int
    rows: int
    outputs: int
    sequences: int
    page: int
    cache: str
    left_bits: int
    result: str = "logits"
    adapters: tuple[Adapter, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        """Open the files again in another process."""
        sizes = self.pages, self.rows, self.outputs, self.sequences
        given = *sizes, self.page, self.cache, self.left_bits, self.result, self.adapters
        return _reopened, (str(self.decoder.path), self.decoder.context, *given)

    def __str__(self) -> str:
        """Its file."""
        return f"the decoder {self.decoder.path}"

    @property
    def dimensions(self) -> dict[str, GivenDimension]:
        """The bounds of its free dimensions, for a session."""
        context = self.decoder.config.context
        most = min(self.pages, -(-context // self.page))
        return {
            "rows": (1, self.rows),
            "sequences": (1, self.sequences),
            "pages": (1, most),
            "outputs": (1, self.outputs),
        }

    @property
    def identity(self) -> str:
        """A digest of the content of its files, and its form."""
        form = self.decoder.context, self.pages, self.page, self.cache, self.left_bits, self.result
        index = ContentIndex()
        adapted = [index.digest(file) for adapter in self.adapters for file in adapter.files]
        return f"decoder {self.decoder.origin(by_content=True)} {form}{adapted or ''}"

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions."""
        return list(LABELS)

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs; `dimensions` has sizes of free dimensions."""

        def argument(name: str, dtype: str, *shape: str | int) -> Argument:
            known = {label: size for label, size in dimensions.items() if isinstance(size, int)}
            return Argument(
                name, dtype, tuple(known.get(size, size) if isinstance(size, str) else size for size in shape)
            )

        rows = tuple(argument(name, "int64", "rows") for name in ("tokens", "positions", "sequences"))
        others = (argument("table", "int64", "sequences", "pages"), argument("last", "int64", "outputs"))
        if self.adapters:
            others = (*others, argument("adapters", "int64", "rows"))
        config = self.decoder.config
        width = config.vocabulary if self.result == "logits" else config.width
        return Signature((*rows, *others), (argument(self.result, "float32", "outputs", width),), {})

    @without_collector()
    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
    ) -> ModuleOp:
        """The module of `glow_high` for these sizes; raises `GlowError` for a damaged file."""
        from glow_mlir.dialects.element_types import ELEMENT_TYPES
        from glow_mlir.frontends.builder.inputs import symbolic_sizes
        from glow_mlir.frontends.decoders.decoder import Decoder, Pages

        missing = [label for label in LABELS if label not in dimensions]
        if missing:
            raise OptionError(f"the dimension '{missing[0]}' has no size", hint="dimensions=program.dimensions")
        given = {label: size for label, size in dimensions.items() if not isinstance(size, str)}
        pages = Pages(self.pages, self.page, ELEMENT_TYPES[self.cache])
        weights = self.decoder.weights(self.decoder.origin(by_content))
        try:
            decoder = Decoder(weights, pages, symbolic_sizes(given), self.left_bits, self.adapters)
            return decoder.module(self.result)
        except GlowError as error:
            error.file = error.file or str(self.decoder.path)
            raise


def open_model(path: str | Path, context: int | None = None) -> DecoderModel:
    """
    Open a GGUF file, or a folder with `config.json` and `*.safetensors`; weights are mapped, not read.

    Sequences have up to `context` tokens, by default as many as the decoder was trained for. Raises `ModelError` for
    files that are missing or damaged, and `UnsupportedError` for another family of decoders.
    """
    path = Path(path)
    if not path.exists():
        raise ModelError("there is no such file or folder", file=str(path))
    source = CheckpointFolder.open(path) if path.is_dir() else GgufFile.open(path)
    model = DecoderModel(path, source, context)
    try:
        _ = model.config
    except GlowError as error:
        error.file = error.file or str(path)
        raise
    return model


def _reopened(path: str, context: int | None, *form: Any) -> DecoderProgram:
    """A program whose files are opened again."""
    return DecoderProgram(open_model(path, context), *form)
