"""
Weights of decoders and encoders, from a file of any kind: matrices of numbers or of quantized blocks, on demand.

A matrix has one row for each result. Tensors go by the names of GGUF files, without `blk.N.` and `.weight`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.errors import ModelError
from glow_mlir.frontends.decoders.config import DecoderConfig
from glow_mlir.frontends.decoders.families import LAYER_PREFIX, LLAMA_NAMES, Family
from glow_mlir.frontends.gguf.block_types import BlockType
from glow_mlir.frontends.gguf.file import GgufFile
from glow_mlir.frontends.gguf.tensor import PARAMETERS, GgufTensor, RowsOfBlocks, example_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Matrix:
    """
    A matrix [rows, depth]: plain `numbers`, or the operands of a product with quantized weights.

    Each block of `block` integers of `bits` bits has a scale and a minimum, of which neighbours may share factors. With
    a `table`, the integers stand for its entries.
    """

    rows: int
    depth: int
    numbers: Deferred | None = None
    quantized: Deferred | None = None
    scales: Deferred | None = None
    minima: Deferred | None = None
    scale_factors: Deferred | None = None
    minimum_factors: Deferred | None = None
    bits: int = 0
    block: int = 0
    table: tuple[int, ...] = ()


class Weights(ABC):
    """
    The tensors of a decoder; errors name file and tensor.

    `origin` identifies the content of the files.
    """

    def __init__(self, path: str, family: Family, config: DecoderConfig, origin: str) -> None:
        self.path, self.family, self.config, self.origin = path, family, config, origin

    def stored(self, array: np.ndarray, name: str) -> Stored:
        """A view of a file as a deferred array, which is named after its origin: hashing weights takes seconds."""
        return Stored(array, f"{self.origin} {name} {array.shape}")

    @abstractmethod
    def find(self, name: str, layer: int | None, suffix: str) -> Any:
        """The tensor of that name, or `None`; `suffix` is `weight` or `bias`."""

    @abstractmethod
    def matrix_of(self, tensor: Any, order: np.ndarray | None, expert: int | None) -> Matrix:
        """A tensor as a matrix, with its rows in another order if that is given; of several experts, that of one."""

    @abstractmethod
    def numbers_of(self, tensor: Any) -> np.ndarray:
        """The elements of a tensor as f32."""

    def row_order(self, letter: str) -> np.ndarray | None:
        """The stored row of each row of queries, keys or values, `letter`; `None` for the order in the file."""
        return None

    def error(self, name: str, layer: int | None, reason: str) -> ModelError:
        """The error for a tensor."""
        return ModelError(reason, file=self.path, node=name if layer is None else f"blk.{layer}.{name}")

    def has(self, name: str, layer: int | None = None, suffix: str = "weight") -> bool:
        """Whether there is a tensor of that name."""
        return self.find(name, layer, suffix) is not None

    def vector(self, name: str, layer: int | None, size: int, suffix: str = "weight") -> np.ndarray | None:
        """A vector as f32, or `None`; raises `ModelError` for another number of elements."""
        tensor = self.find(name, layer, suffix)
        if tensor is None:
            return None
        found = self.numbers_of(tensor).reshape(-1)
        if found.size != size:
            raise self.error(name, layer, f"the vector has {found.size} elements, not {size}")
        return found

    def needed_vector(self, name: str, layer: int | None, size: int) -> np.ndarray:
        """As `vector`; raises `ModelError` if it is missing."""
        found = self.vector(name, layer, size)
        if found is None:
            raise self.error(name, layer, "the tensor is missing")
        return found

    def matrix(
        self,
        name: str,
        layer: int | None,
        shape: tuple[int, int],
        order: np.ndarray | None = None,
        expert: int | None = None,
        stored_rows: int = 0,
    ) -> Matrix:
        """
        A matrix of that shape; raises `ModelError` if it is missing or has another.

        `order` chooses rows of the stored matrix, which has `stored_rows` if that is another number.
        """
        tensor = self.find(name, layer, "weight") if expert is None else self.expert_of(name, layer, expert)
        if tensor is None:
            raise self.error(name, layer, "the tensor is missing")
        whole = self.matrix_of(tensor, None, expert)
        if (whole.rows, whole.depth) != (stored_rows or shape[0], shape[1]):
            wanted = [stored_rows or shape[0], shape[1]]
            raise self.error(name, layer, f"the matrix has the shape {[whole.rows, whole.depth]}, not {wanted}")
        return whole if order is None else self.matrix_of(tensor, order, expert)

    def kernel(self, name: str, shape: tuple[int, int, int]) -> Matrix:
        """
        The kernel [results, depth, reach] of a convolution along one axis, as a matrix [results, reach · depth].

        Raises `ModelError` if it is missing or has another shape.
        """
        tensor = self.find(name, None, "weight")
        if tensor is None:
            raise self.error(name, None, "the tensor is missing")
        found = self.numbers_of(tensor)
        if found.shape != shape:
            raise self.error(name, None, f"the kernel has the shape {list(found.shape)}, not {list(shape)}")
        return plain_matrix(self.stored(found.swapaxes(1, 2).reshape(shape[0], -1), name), None)

    def expert_of(self, name: str, layer: int | None, expert: int) -> Any:
        """The tensor with the weights of an expert, perhaps beside those of others."""
        return self.find(name, layer, "weight")


class GgufWeights(Weights):
    """The tensors of a GGUF file."""

    def __init__(self, file: GgufFile, family: Family, config: DecoderConfig, origin: str = "") -> None:
        super().__init__(str(file.path), family, config, origin)
        self.file = file

    def find(self, name: str, layer: int | None, suffix: str) -> GgufTensor | None:
        prefix = "" if layer is None else f"blk.{layer}."
        return self.file.tensors.get(f"{prefix}{name}.{suffix}")

    def matrix_of(self, tensor: GgufTensor, order: np.ndarray | None, expert: int | None) -> Matrix:
        raw = tensor.raw if expert is None or tensor.raw.ndim < 3 else tensor.raw[expert]
        # Tools that write files leave out axes of 1.
        raw = raw[None] if raw.ndim == 1 else raw
        if raw.ndim != 2:
            raise ModelError(f"the tensor of shape {list(tensor.shape)} is no matrix", file=self.path, node=tensor.name)
        rows = self.stored(raw, f"{tensor.name} {expert}")
        if not tensor.is_quantized:
            return plain_matrix(self.stored(raw.view(tensor.array().dtype), rows.digest), order)
        return blocks_of(rows, tensor.type, tensor.shape[-1], order)

    def numbers_of(self, tensor: GgufTensor) -> np.ndarray:
        return tensor.array().astype(np.float32)

    def row_order(self, letter: str) -> np.ndarray | None:
        return gguf_order(self.family, self.config, letter)


def gguf_order(family: Family, config: DecoderConfig, letter: str) -> np.ndarray | None:
    """As `Weights.row_order`, for what is stored in GGUF files."""
    # The elements of a pair are adjacent in the file, and half of what is rotated apart in the module.
    if letter not in "qk" or not family.has_adjacent_pairs:
        return None
    heads = config.heads if letter == "q" else config.key_heads
    stored = np.arange(heads * config.head_size).reshape(heads, -1)
    pairs = max((len(form.rotation.frequencies) for form in config.layers if form.rotation), default=0)
    turned = stored[:, : 2 * pairs].reshape(heads, pairs, 2).swapaxes(1, 2)
    return np.concatenate([turned.reshape(heads, -1), stored[:, 2 * pairs :]], axis=1).reshape(-1)


def blocks_of(rows: Deferred, type_: BlockType, depth: int, order: np.ndarray | None) -> Matrix:
    """A matrix of quantized blocks from the bytes of its rows."""
    example = example_of(type_)

    def part(name: str) -> Deferred | None:
        load = getattr(example, name)
        if load is None:
            return None
        block = load()
        return RowsOfBlocks(rows, type_, name, depth // type_.elements * block.shape[1], block.dtype, order)

    return Matrix(
        rows.shape[0] if order is None else len(order),
        depth,
        quantized=RowsOfBlocks(rows, type_, "quantized", depth * type_.bits // 8, np.dtype(np.uint8), order),
        bits=type_.bits,
        block=type_.group,
        table=type_.table,
        **{name: part(name) for name in PARAMETERS},
    )


def plain_matrix(rows: Stored, order: np.ndarray | None) -> Matrix:
    """A matrix of plain numbers."""
    if order is not None:
        # Neighbouring rows are a view; others are copied, which only the small matrices of heads need.
        is_part = bool((np.diff(order) == 1).all())
        chosen = rows.array()[order[0] : order[-1] + 1] if is_part else rows.array()[order]
        rows = Stored(chosen, f"{rows.digest} rows {Stored(order).digest}")
    return Matrix(*rows.shape, numbers=rows)


@dataclass(frozen=True)
class NamedArray:
    """A tensor of a checkpoint, and its name there."""

    name: str
    array: np.ndarray


class CheckpointWeights(Weights):
    """The tensors of a checkpoint, by the names of its family."""

    def __init__(
        self, path: str, tensors: Mapping[str, np.ndarray], family: Family, config: DecoderConfig, origin: str = ""
    ) -> None:
        super().__init__(path, family, config, origin)
        self.tensors = tensors
        self.names = {**LLAMA_NAMES, **family.names}

    def find(self, name: str, layer: int | None, suffix: str) -> NamedArray | None:
        return self._named(self.names.get(name), layer, suffix)

    def _named(self, own: str | None, layer: int | None, suffix: str) -> NamedArray | None:
        if own is None:
            return None
        prefix = "" if layer is None else self.names.get("layer", LAYER_PREFIX).format(layer=layer)
        for change, where, stem in product(SPELLINGS, prefix.split("|"), own.split("|")):
            name = change(f"{where}{stem}.{suffix}")
            if (found := self.tensors.get(name)) is not None:
                is_turned = layer is not None and found.ndim == 2 and self.family.has_turned_matrices
                return NamedArray(name, found.T if is_turned else found)
        return None

    def expert_of(self, name: str, layer: int | None, expert: int) -> NamedArray | None:
        return self._named(self.names[name].format(expert=expert), layer, "weight")

    def matrix_of(self, tensor: NamedArray, order: np.ndarray | None, expert: int | None) -> Matrix:
        if tensor.array.ndim != 2:
            reason = f"the tensor of shape {list(tensor.array.shape)} is no matrix"
            raise ModelError(reason, file=self.path, node=tensor.name)
        return plain_matrix(self.stored(tensor.array, tensor.name), order)

    def numbers_of(self, tensor: NamedArray) -> np.ndarray:
        return tensor.array.astype(np.float32)


_PREFIX = re.compile(r"^(transformer|model|bert|roberta|distilbert|nomic_bert)\.")


def _bare(name: str) -> str:
    """The name in a network that is stored without its head."""
    return _PREFIX.sub("", name)


def _old(name: str) -> str:
    """The name that TensorFlow had for it."""
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda name: name,
    lambda name: f"language_model.{name}",
    lambda name: name.replace("model.", "model.language_model.", 1),
    _bare,
    _old,
    lambda name: _old(_bare(name)),
)
"""How names of tensors change where a network is a part of a larger model, is stored without its head, or is old."""
