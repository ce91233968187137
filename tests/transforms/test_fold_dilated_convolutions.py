"""Dilated convolutions as TensorFlow exports them become convolutions with dilations, and compute the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from models import GraphBuilder
from onnx import TensorProto
from validation import validate

from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.data_movement import DataMovement
from glow_mlir.dialects.properties import ints
from glow_mlir.driver.pipelines import OPTIMIZE
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context

CONTEXT = new_context()


@dataclass
class Export:
    """A 3×3 convolution with `same` padding between SpaceToBatchND and BatchToSpaceND, channels last."""

    batch: int
    height: int
    width: int
    block: int
    channels: int = 3
    filters: int = 4

    def __post_init__(self) -> None:
        self.g = GraphBuilder(0)
        block, sizes = self.block, (self.height, self.width)
        self.after = tuple(block + (-size) % block for size in sizes)
        padded = [size + block + after for size, after in zip(sizes, self.after, strict=True)]
        self.dealt = [size // block for size in padded]
        self.kept = [size - 2 for size in self.dealt]

    def ints(self, *numbers: int) -> str:
        """A list as an initializer."""
        return self.g.weight(np.array(numbers, np.int64))

    def pad(self, value: str, axes: tuple[int, int]) -> str:
        """The border that the convolution needs, up to a multiple of the block."""
        pads = [0] * 8
        for axis, after in zip(axes, self.after, strict=True):
            pads[axis], pads[axis + 4] = self.block, after
        return self.g.node("Pad", value, self.ints(*pads))

    def crop(self, value: str, axes: tuple[int, int]) -> str:
        """Without the results that fill the last blocks."""
        return self.g.node("Slice", value, self.ints(0, 0), self.ints(self.height, self.width), self.ints(*axes))

    def transposed(self, value: str, *permutations: list[int]) -> str:
        """Transposes in a row."""
        for permutation in permutations:
            value = self.g.node("Transpose", value, perm=permutation)
        return value

    def conv(self, value: str) -> str:
        """The convolution, for which channels come first."""
        weights = self.g.weight(self.g.rng.standard_normal((self.filters, self.channels, 3, 3)).astype(np.float32))
        value = self.g.node("Conv", self.transposed(value, [0, 3, 1, 2]), weights)
        return self.transposed(value, [0, 2, 3, 1])

    def by_depth(self) -> str:
        """As tf2onnx writes equal blocks: the batch takes the place of channels."""
        value = self.pad(self.transposed("x", [0, 3, 1, 2], [1, 0, 2, 3]), (2, 3))
        value = self.g.node("SpaceToDepth", value, blocksize=self.block)
        value = self.conv(self.transposed(value, [1, 0, 2, 3], [0, 2, 3, 1]))
        value = self.transposed(value, [0, 3, 1, 2], [1, 0, 2, 3])
        value = self.crop(self.g.node("DepthToSpace", value, blocksize=self.block), (2, 3))
        return self.transposed(value, [1, 0, 2, 3], [0, 2, 3, 1])

    def by_reshapes(self) -> str:
        """As tf2onnx writes any blocks."""
        b, n, (h, w), (oh, ow) = self.block, self.batch, self.dealt, self.kept
        value = self.g.node("Reshape", self.pad("x", (1, 2)), self.ints(n, h, b, w, b, self.channels))
        value = self.transposed(value, [2, 4, 0, 1, 3, 5])
        value = self.conv(self.g.node("Reshape", value, self.ints(b * b * n, h, w, self.channels)))
        value = self.g.node("Reshape", value, self.ints(b, b, n, oh, ow, self.filters))
        value = self.transposed(value, [2, 3, 0, 4, 1, 5])
        value = self.g.node("Reshape", value, self.ints(n, oh * b, ow * b, self.filters))
        return self.crop(value, (1, 2))

    def model(self, form: str) -> onnx.ModelProto:
        """The model, with a bias and a ReLU behind the convolution."""
        value = self.by_depth() if form == "depth" else self.by_reshapes()
        bias = self.g.weight(self.g.rng.standard_normal(self.filters).astype(np.float32))
        result = self.g.node("Relu", self.g.node("Add", value, bias))
        image = [self.batch, self.height, self.width]
        kind = int(TensorProto.FLOAT)
        return self.g.model({"x": (kind, [*image, self.channels])}, {result: [*image, self.filters]})


@pytest.mark.parametrize("form", ["depth", "reshapes"])
@pytest.mark.parametrize("sizes", [(2, 10, 9, 2), (1, 7, 8, 3), (1, 6, 6, 2), (3, 5, 1, 4)])
def test_exported_form_becomes_one_convolution(sizes: tuple[int, int, int, int], form: str) -> None:
    batch, height, width, block = sizes
    module = import_model(Export(batch, height, width, block).model(form))
    image = np.random.default_rng(1).standard_normal((batch, height, width, 3)).astype(np.float32)
    validate(module, OPTIMIZE.passes(), {"x": image}, rtol=1e-5, atol=1e-5, context=CONTEXT)
    (conv,) = [op for op in module.walk() if isinstance(op, ConvOp)]
    assert ints(conv.dilations) == (block, block)
    assert conv.bias is not None
    assert not [op for op in module.walk() if isinstance(op, DataMovement)]
