"""Decoders and encoders in files: opened, described, and as models for sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glow_mlir.errors import GlowError, ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.checkpoints.folder import CONFIG, CheckpointFolder
from glow_mlir.frontends.decoders.adapters import Adapter
from glow_mlir.frontends.decoders.checkpoint_config import checkpoint_config
from glow_mlir.frontends.decoders.config import ADAPTER_INPUTS, FLOATS, INPUTS, DecoderConfig, Shapes, TextConfig
from glow_mlir.frontends.decoders.families import Family
from glow_mlir.frontends.decoders.genai_folder import GenaiFolder
from glow_mlir.frontends.decoders.gguf_config import gguf_config
from glow_mlir.frontends.decoders.onnx_folder import is_onnx_folder, open_onnx_folder
from glow_mlir.frontends.decoders.weights import CheckpointWeights, GgufWeights, Weights
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.options.generation import CACHES
from glow_mlir.runtime.identity import ContentIndex, file_identity
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.file_kinds import GENAI
from glow_mlir.support.symbols import Dimension, GivenDimension

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

DEFAULT_BITS = 15
"""The bits to which rows are rounded in front of quantized weights, where neither caller nor file says others."""

MEMORY_PAGE = 64
"""The rows of an encoder in a page."""


@dataclass(frozen=True)
class DecoderModel:
    """
    A decoder in a GGUF file, or in a folder of a checkpoint or of onnxruntime-genai.

    `context` limits sequences to less than it can. `part` is `encoder` or `decoder` for one of both in a checkpoint.
    """

    path: Path
    source: GgufFile | CheckpointFolder | GenaiFolder
    context: int | None = None
    part: str = ""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The entries of the GGUF file, of `config.json`, or of the model in `genai_config.json`."""
        match self.source:
            case GgufFile():
                return self.source.metadata
            case GenaiFolder():
                return self.source.entries
            case _:
                return self.source.config

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The files that it consists of, without tokenizer."""
        match self.source:
            case GgufFile():
                return self.source.paths
            case GenaiFolder():
                return self.source.files
            case _:
                return (self.path / CONFIG, *self.source.files)

    @property
    def config(self) -> TextConfig:
        """What callers have to know of it; raises `ModelError` and `UnsupportedError`, which name the file."""
        if isinstance(self.source, GenaiFolder):
            context = min(self.context or self.source.context, self.source.context)
            return TextConfig(self.source.family, self.source.graph.vocabulary, context)
        return self._described[1]

    @property
    def is_graph(self) -> bool:
        """Whether its files have a graph, and no description of the network."""
        return isinstance(self.source, GenaiFolder)

    @property
    def network(self) -> DecoderConfig:
        """The description of a network that is no graph; raises `OptionError` for a graph."""
        if isinstance(self.source, GenaiFolder):
            hint = "glow_mlir.Generator continues texts with it"
            raise OptionError("is a graph, which gives logits only", file=str(self.path), hint=hint)
        return self._described[1]

    @cached_property
    def _described(self) -> tuple[Family, DecoderConfig]:
        """Family and description of a decoder that is no graph."""
        assert not isinstance(self.source, GenaiFolder)
        if isinstance(self.source, GgufFile):
            return gguf_config(self.source, self.context)
        return checkpoint_config(self.path / CONFIG, self.source.config, self.context, self.part)

    def bounded(self, context: int | None, usual: int) -> DecoderModel:
        """
        The model for sequences of up to `context` tokens, or if that is not given, of `usual` ones if it can have them.

        Raises `OptionError` for a context that it cannot have.
        """
        most = self.config.context
        if context is None:
            return replace(self, context=min(most, usual))
        if not 1 < context <= most:
            hint = f"{self.path.name} was trained for {most} tokens"
            raise OptionError(f"the context cannot be {context}", hint=hint)
        return replace(self, context=context)

    def weights(self, origin: str) -> Weights:
        """The weights of a decoder that is no graph; `origin` identifies the content of its files."""
        (family, config), source = self._described, self.source
        assert not isinstance(source, GenaiFolder)
        if isinstance(source, GgufFile):
            return GgufWeights(source, family, config, origin)
        return CheckpointWeights(str(self.path), source.tensors, family, config, origin)

    @property
    def results(self) -> Mapping[str, int]:
        """The outputs that its programs may have, and their columns."""
        if isinstance(self.source, GenaiFolder):
            return {"logits": self.source.graph.vocabulary}
        network = self.network
        found = {"logits": network.vocabulary} if network.is_causal else {}
        return {**found, "hidden": network.width, **({"scores": network.labels} if network.labels else {})}

    @property
    def inputs(self) -> Shapes:
        """The inputs of its programs: name → sizes or labels of axes."""
        return INPUTS if isinstance(self.source, GenaiFolder) else self.network.inputs

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
        memories: int = 0,
    ) -> DecoderProgram:
        """
        A model for `InferenceSession` of calls with up to `rows` tokens of up to `sequences` sequences.

        - `outputs`: the maximum number of rows of which logits are wanted.
        - `pages`: the number of pages of `page` tokens for keys and values of type `cache`.
        - `left_bits`: bits to which rows are rounded in front of quantized weights: 15, 8, or 0 for none. By default
          what each node of a folder of onnxruntime-genai says, otherwise 15.
        - `result`: the output: `logits` [outputs, vocabulary], `hidden` [outputs, width], the rows behind the last
          norm, for embeddings, or `scores` [outputs, labels] of a head for classes.
        - `adapters`: low-rank adapters; the input `adapters` [rows] has the number of each row's from 1 on, or 0.
        - `memories`: the number of results of an encoder that there are pages for, if sequences attend to these.

        Raises `OptionError` for values out of range.
        """
        sizes = {"pages": pages, "rows": rows, "outputs": outputs, "sequences": sequences, "page": page}
        for name, size in sizes.items():
            if size < 1:
                raise OptionError(f"{name} must be at least 1, not {size}")
        if cache not in CACHES:
            raise OptionError(f"the cache cannot be of '{cache}'", hint=f"types are {', '.join(CACHES)}")
        if result == "logits" and result not in self.results:
            hint = "it embeds texts: glow_mlir.Embedder, or glow-generate --embed"
            raise OptionError("is an encoder, and continues no text", file=str(self.path), hint=hint)
        if result not in self.results:
            hint = f"results are {', '.join(self.results)}"
            raise OptionError(f"there is no result '{result}'", file=str(self.path), hint=hint)
        if adapters and self.is_graph:
            raise OptionError("is a graph, which takes no adapters", file=str(self.path))
        if left_bits is None and not self.is_graph:
            left_bits = DEFAULT_BITS
        if not self.is_graph and bool(self.network.memory) != bool(memories):
            raise OptionError(
                "memories are for decoders that attend to an encoder, and only these", file=str(self.path)
            )
        own = tuple(adapters)
        return DecoderProgram(self, pages, rows, outputs, sequences, page, cache, left_bits, result, own, memories)


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
    left_bits: int | None
    result: str = "logits"
    adapters: tuple[Adapter, ...] = ()
    memories: int = 0

    def __reduce__(self) -> tuple[object, ...]:
        """Open the files again in another process."""
        sizes = self.pages, self.rows, self.outputs, self.sequences
        given = *sizes, self.page, self.cache, self.left_bits, self.result, self.adapters, self.memories
        return _reopened, (str(self.decoder.path), self.decoder.context, self.decoder.part, *given)

    def __str__(self) -> str:
        """Its file."""
        return f"the decoder {self.decoder.path}"

    @property
    def dimensions(self) -> dict[str, GivenDimension]:
        """The bounds of its free dimensions, for a session."""
        context = self.decoder.config.context
        most = min(self.pages, -(-context // self.page))
        found: dict[str, tuple[int, int]] = {
            "rows": (1, self.rows),
            "sequences": (1, self.sequences),
            "pages": (1, most),
            "outputs": (1, self.outputs),
        }
        if self.memories:
            rows = self.decoder.network.memory
            found |= {
                "memory_rows": (0, rows),
                "memory_pages": (1, -(-rows // MEMORY_PAGE)),
                "copies": (0, self.sequences),
            }
        # The frames of sound are always as many as an encoder takes.
        is_sound = not self.decoder.is_graph and self.decoder.network.features
        return {label: (most if is_sound else least, most) for label, (least, most) in found.items()}

    @property
    def identity(self) -> str:
        """A digest of the content of its files, and its form."""
        form = self.decoder.context, self.pages, self.page, self.cache, self.left_bits, self.result
        index = ContentIndex()
        adapted = [index.digest(file) for adapter in self.adapters for file in adapter.files]
        part = f" {self.decoder.part} {self.memories}" if self.decoder.part else ""
        return f"decoder {self.decoder.origin(by_content=True)} {form}{adapted or ''}{part}"

    def free_dimensions(self) -> list[str]:
        """The labels of its free dimensions."""
        return list(self.dimensions)

    def signature(self, dimensions: Mapping[str, GivenDimension]) -> Signature:
        """Inputs and outputs; `dimensions` has sizes of free dimensions."""
        shapes = {**self.decoder.inputs, **(ADAPTER_INPUTS if self.adapters else {})}
        inputs = tuple(
            Argument(name, "float32" if name in FLOATS else "int64", shape).sized(dimensions)
            for name, shape in shapes.items()
        )
        columns = self.decoder.results[self.result]
        output = Argument(self.result, "float32", ("outputs", columns)).sized(dimensions)
        return Signature(inputs, (output,), {})

    @without_collector()
    def module(
        self,
        dimensions: Mapping[str, GivenDimension],
        by_content: bool = True,
        values: Mapping[str, np.ndarray] | None = None,
    ) -> ModuleOp:
        """The module of `glow_high` for these sizes; raises `GlowError` for a damaged file."""
        missing = [label for label in self.dimensions if label not in dimensions]
        if missing:
            raise OptionError(f"the dimension '{missing[0]}' has no size", hint="dimensions=program.dimensions")
        given = {label: size for label, size in dimensions.items() if not isinstance(size, str)}
        try:
            return self._module(given, by_content)
        except GlowError as error:
            error.file = error.file or str(self.decoder.path)
            raise

    def _module(self, dimensions: Mapping[str, Dimension], by_content: bool) -> ModuleOp:
        from glow_mlir.dialects.element_types import ELEMENT_TYPES
        from glow_mlir.frontends.builder.pages import Pages

        element = ELEMENT_TYPES[self.cache]
        pages = Pages(self.pages, self.page, element)
        if isinstance(self.decoder.source, GenaiFolder):
            from glow_mlir.frontends.onnx.paged_graph import import_paged

            context = self.decoder.config.context
            return import_paged(self.decoder.source.graph, pages, context, dimensions, by_content, self.left_bits)
        from glow_mlir.frontends.builder.inputs import symbolic_sizes
        from glow_mlir.frontends.decoders.decoder import Decoder

        weights = self.decoder.weights(self.decoder.origin(by_content))
        bits = DEFAULT_BITS if self.left_bits is None else self.left_bits
        memory = None
        if self.memories:
            count = self.memories * -(-weights.config.memory // MEMORY_PAGE)
            memory = Pages(count, MEMORY_PAGE, element)
        decoder = Decoder(weights, pages, symbolic_sizes(dimensions), bits, self.adapters, memory)
        return decoder.module(self.result)


def open_model(path: str | Path, context: int | None = None, part: str = "") -> DecoderModel:
    """
    Open a GGUF file, or a folder of a checkpoint or of onnxruntime-genai; weights are mapped, not read.

    Folders have `config.json` and `*.safetensors`, or `genai_config.json` and a graph of ONNX. A `part` may be in a
    graph of its own, `encoder_model.onnx` or `decoder_model.onnx`.

    Sequences have up to `context` tokens, by default as many as the decoder was trained for. `part` is `encoder` or
    `decoder` where a checkpoint has both. Raises `ModelError` for
    files that are missing or damaged, and `UnsupportedError` for another family of decoders.
    """
    path = Path(path)
    if not path.exists():
        raise ModelError("there is no such file or folder", file=str(path))
    model = DecoderModel(path, _opened(path, part), context, part)
    try:
        _ = model.config
    except GlowError as error:
        error.file = error.file or str(path)
        raise
    return model


def _opened(path: Path, part: str) -> GgufFile | CheckpointFolder | GenaiFolder:
    """What there is at a path; an encoder with its decoder is in a folder of a checkpoint, or of two graphs."""
    if part and (not path.is_dir() or (path / GENAI).is_file()):
        hint = "it is a folder with config.json, and model.safetensors or encoder_model.onnx"
        raise UnsupportedError("is no folder of an encoder with its decoder", file=str(path), hint=hint)
    if not path.is_dir():
        return GgufFile.open(path)
    if (path / GENAI).is_file():
        return GenaiFolder.open(path)
    if part and not CheckpointFolder.is_at(path) and is_onnx_folder(path):
        return open_onnx_folder(path, part)
    return CheckpointFolder.open(path)


def _reopened(path: str, context: int | None, part: str, *form: Any) -> DecoderProgram:
    """A program whose files are opened again."""
    return DecoderProgram(open_model(path, context, part), *form)
