"""Forms of operators whose machine code `object_bytes.py` compares between two versions of the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.numpy_helper import from_array

Operand = np.ndarray | None

OPSET = 22
IR_VERSION = 10


@dataclass(frozen=True)
class Form:
    """
    An ONNX operator with operands of certain shapes: the first `inputs` of them come with the call, the others are
    constants, and None is one that is absent.

    With `bound`, the first axis of the first input, and of others that are as long, has a size that calls decide.
    """

    name: str
    kind: str
    operands: Sequence[Operand]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inputs: int = 1
    outputs: int = 1
    bound: bool = False
    domain: str = ""

    def model(self) -> onnx.ModelProto:
        """The operator as a model; the size with a bound is called N."""
        names = ["" if operand is None else f"x{index}" for index, operand in enumerate(self.operands)]
        results = [f"y{index}" for index in range(self.outputs)]
        node = helper.make_node(self.kind, names, results, domain=self.domain, **self.attributes)
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), self._declared(array))
            for name, array in self._present(0, self.inputs)
        ]
        known = [from_array(array, name) for name, array in self._present(self.inputs, len(names))]
        graph = helper.make_graph([node], "form", given, [onnx.ValueInfoProto(name=name) for name in results], known)
        opsets = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(self.domain, 1)] if self.domain else [])]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def feeds(self) -> dict[str, np.ndarray]:
        """The inputs of a call."""
        return dict(self._present(0, self.inputs))

    def bounds(self) -> dict[str, tuple[int, int]]:
        """The least and the largest of each free size."""
        return {"N": (1, self._longest)} if self.bound else {}

    @property
    def _longest(self) -> int:
        return len(next(array for _, array in self._present(0, 1)))

    def _declared(self, array: np.ndarray) -> list[int | str]:
        is_bound = self.bound and array.shape[0] == self._longest
        return ["N", *array.shape[1:]] if is_bound else list(array.shape)

    def _present(self, begin: int, end: int) -> Iterator[tuple[str, np.ndarray]]:
        for index, operand in enumerate(self.operands[begin:end], begin):
            if operand is not None:
                yield f"x{index}", operand


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers in front of which no operator is special."""
    return np.random.default_rng([*shape, 1]).uniform(0.1, 0.9, shape).astype(dtype)


def codes(*shape: int, dtype: str = "uint8") -> np.ndarray:
    """Integers of 7 bits."""
    return np.random.default_rng([*shape, 2]).integers(1, 127, shape).astype(dtype)


def integers(*values: int) -> np.ndarray:
    """A list of positions or sizes."""
    return np.array(values, np.int64)


def scale(value: float) -> np.ndarray:
    """A scale of codes."""
    return np.array(value, np.float32)


def zero(value: int, dtype: str = "uint8") -> np.ndarray:
    """A zero point of codes."""
    return np.array(value, dtype)


ROWS = floats(64, 1000)
IMAGE, MANY = floats(1, 64, 56, 56), floats(8, 32, 28, 28)
HEADS = floats(12, 128, 128)


def of_elements() -> Iterator[Form]:
    """Operators whose elements depend on the same place of the operands alone."""
    for kind in "Relu Sigmoid Tanh Gelu Erf Exp Log Sqrt Softplus HardSwish Mish Elu Sin Floor Round".split():
        yield Form(kind, kind, [ROWS])
    for kind in "Add Mul Div Pow PRelu".split():
        yield Form(f"{kind}, a row", kind, [ROWS, floats(1000)], inputs=2)
        yield Form(f"{kind}, a column", kind, [ROWS, floats(64, 1)], inputs=2)
    yield Form("Add, i32", "Add", [codes(64, 1000, dtype="int32"), codes(64, 1000, dtype="int32")], inputs=2)
    yield Form("Mod, i64", "Mod", [codes(4, 100, dtype="int64"), codes(4, 100, dtype="int64")], inputs=2)
    yield Form("Less", "Less", [ROWS, floats(1000)], inputs=2)
    yield Form("Where", "Where", [ROWS > 0.5, ROWS, scale(0.0)], inputs=2)
    yield Form("Relu, f16", "Relu", [ROWS.astype("float16")])
    yield Form("Sigmoid, f16", "Sigmoid", [ROWS.astype("float16")])
    yield Form("Tanh, f64", "Tanh", [ROWS.astype("float64")])
    yield Form("Clip", "Clip", [ROWS, scale(0.2), scale(0.7)])
    for name, to in (("i8", TensorProto.INT8), ("f16", TensorProto.FLOAT16), ("i64", TensorProto.INT64)):
        yield Form(f"Cast to {name}", "Cast", [ROWS], {"to": to})
    yield Form("QuantizeLinear", "QuantizeLinear", [ROWS, scale(0.01), zero(3)])
    yield Form("DequantizeLinear", "DequantizeLinear", [codes(64, 1000), scale(0.01), zero(3)])
    yield Form("DynamicQuantizeLinear", "DynamicQuantizeLinear", [ROWS], outputs=3)


def of_rows() -> Iterator[Form]:
    """Reductions, softmax and normalizations."""
    for kind in "Sum Mean Max Prod L2 LogSumExp".split():
        yield Form(f"Reduce{kind}, rows", f"Reduce{kind}", [ROWS, integers(1)])
        yield Form(f"Reduce{kind}, middle", f"Reduce{kind}", [floats(8, 64, 49), integers(1)])
    for axis, where in ((-1, "rows"), (1, "middle")):
        yield Form(f"ArgMax, {where}", "ArgMax", [floats(8, 64, 49)], {"axis": axis})
        yield Form(f"CumSum, {where}", "CumSum", [floats(8, 64, 49), np.array(axis, np.int64)])
        yield Form(f"Softmax, {where}", "Softmax", [floats(8, 64, 49)], {"axis": axis})
        yield Form(f"TopK, {where}", "TopK", [floats(8, 64, 49), integers(5)], {"axis": axis}, outputs=2)
    yield Form("Softmax, heads", "Softmax", [HEADS])
    yield Form("Softmax, long", "Softmax", [floats(1, 1000)])
    yield Form("Softmax, out of cache", "Softmax", [floats(12, 384, 384)])
    yield Form("LogSoftmax", "LogSoftmax", [ROWS])
    yield Form("LayerNormalization", "LayerNormalization", [floats(128, 384), floats(384), floats(384)])
    yield Form("RMSNormalization", "LpNormalization", [floats(128, 384)])
    yield Form("InstanceNormalization", "InstanceNormalization", [MANY, floats(32), floats(32)])
    yield Form("GroupNormalization", "GroupNormalization", [MANY, floats(32), floats(32)], {"num_groups": 8})
    yield Form("LRN", "LRN", [MANY], {"size": 5})
    trained = [floats(32) for _ in range(4)]
    yield Form("BatchNormalization", "BatchNormalization", [MANY, *trained])


def of_windows() -> Iterator[Form]:
    """Pools, resizes, and samples between pixels."""
    three = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for kind in "MaxPool AveragePool LpPool".split():
        yield Form(f"{kind} 3x3", kind, [MANY], three)
        yield Form(f"{kind} 3x3/2", kind, [MANY], {**three, "strides": [2, 2]})
    yield Form("MaxPool 2x2/2", "MaxPool", [MANY], {"kernel_shape": [2, 2], "strides": [2, 2]})
    yield Form("MaxPool with indices", "MaxPool", [MANY], three, outputs=2)
    yield Form("MaxPool, a line", "MaxPool", [floats(2, 16, 100)], {"kernel_shape": [3], "strides": [2]})
    yield Form("MaxPool, a volume", "MaxPool", [floats(1, 8, 8, 8, 8)], {"kernel_shape": [2, 2, 2]})
    yield Form("AveragePool, border counted", "AveragePool", [MANY], {**three, "count_include_pad": 1})
    yield Form("GlobalAveragePool", "GlobalAveragePool", [MANY])
    yield Form("GlobalMaxPool", "GlobalMaxPool", [MANY])
    for mode in ("nearest", "linear", "cubic"):
        yield Form(f"Resize up, {mode}", "Resize", [MANY, None, np.array([1, 1, 2, 2], np.float32)], {"mode": mode})
    half = np.array([1, 1, 0.5, 0.5], np.float32)
    yield Form("Resize down, linear", "Resize", [MANY, None, half], {"mode": "linear"})
    yield Form("GridSample", "GridSample", [MANY, floats(8, 14, 14, 2)], inputs=2)
    regions, of_image = floats(5, 4) * 20, np.zeros(5, np.int64)
    yield Form("RoiAlign", "RoiAlign", [MANY, regions, of_image], {"output_height": 7, "output_width": 7}, inputs=3)
    yield Form("Col2Im", "Col2Im", [floats(1, 36, 100), integers(12, 12), integers(3, 3)])


def of_places() -> Iterator[Form]:
    """What moves elements."""
    order, rows = np.random.default_rng(0).permutation(64), codes(128, dtype="int64") % 64
    yield Form("Transpose, planes to pixels", "Transpose", [IMAGE], {"perm": [0, 2, 3, 1]})
    yield Form("Transpose, heads", "Transpose", [floats(1, 128, 12, 32)], {"perm": [0, 2, 1, 3]})
    yield Form("Transpose, a square", "Transpose", [floats(251, 253)], {"perm": [1, 0]})
    yield Form("Transpose, i8", "Transpose", [codes(64, 100)], {"perm": [1, 0]})
    for axis in (0, 1):
        yield Form(f"Concat {axis}", "Concat", [floats(64, 100), floats(64, 100)], {"axis": axis}, inputs=2)
        yield Form(f"Gather {axis}", "Gather", [floats(64, 64), rows], {"axis": axis}, inputs=2)
        yield Form(f"Gather {axis}, known", "Gather", [floats(64, 64), order], {"axis": axis})
        yield Form(f"Split {axis}", "Split", [floats(64, 100)], {"axis": axis, "num_outputs": 2}, outputs=2)
    yield Form("GatherND", "GatherND", [floats(64, 64), rows.reshape(64, 2)], inputs=2)
    yield Form("GatherElements", "GatherElements", [floats(64, 64), rows.reshape(2, 64)], inputs=2)
    updates = floats(128, 64)
    yield Form("ScatterND", "ScatterND", [floats(64, 64), rows.reshape(128, 1), updates], {"reduction": "add"}, 3)
    yield Form("ScatterElements", "ScatterElements", [floats(64, 64), rows.reshape(2, 64), floats(2, 64)], inputs=3)
    for mode in ("constant", "edge", "reflect"):
        yield Form(f"Pad, {mode}", "Pad", [MANY, integers(0, 0, 1, 1, 0, 0, 2, 2)], {"mode": mode})
    yield Form("Slice", "Slice", [MANY, integers(1, 20), integers(30, 2), integers(1, 3), integers(1, -2)])
    yield Form("Tile", "Tile", [floats(16, 100), integers(3, 2)])
    yield Form("Expand", "Expand", [floats(64, 1), integers(8, 64, 100)])
    yield Form("DepthToSpace", "DepthToSpace", [MANY], {"blocksize": 2})
    yield Form("SpaceToDepth", "SpaceToDepth", [MANY], {"blocksize": 2})
    yield Form("ReverseSequence", "ReverseSequence", [floats(20, 8, 16), integers(*range(5, 13))], inputs=2)
    yield Form("OneHot", "OneHot", [rows, np.array(64, np.int64), np.array([0, 1], np.float32)])
    yield Form("NonZero", "NonZero", [floats(20, 30) > 0.5])
    yield Form("Trilu", "Trilu", [floats(100, 100)])


CONVOLUTIONS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...], Mapping[str, Any]]] = {
    "1x1": ((1, 64, 56, 56), (128, 64, 1, 1), {}),
    "1x1/2": ((1, 64, 56, 56), (128, 64, 1, 1), {"strides": [2, 2]}),
    "3x3": ((1, 64, 28, 28), (64, 64, 3, 3), {"pads": [1] * 4}),
    "3x3/2": ((1, 64, 28, 28), (64, 64, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "7x7/2": ((1, 3, 112, 112), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
    "by channel": ((1, 96, 28, 28), (96, 1, 3, 3), {"pads": [1] * 4, "group": 96}),
    "by channel /2": ((1, 96, 28, 28), (96, 1, 5, 5), {"pads": [2] * 4, "strides": [2, 2], "group": 96}),
    "groups": ((1, 64, 28, 28), (64, 16, 3, 3), {"pads": [1] * 4, "group": 4}),
    "dilated": ((1, 32, 28, 28), (32, 32, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    "line": ((1, 40, 200), (64, 40, 5), {"pads": [2, 2]}),
    "volume": ((1, 8, 8, 16, 16), (16, 8, 3, 3, 3), {"pads": [1] * 6}),
}
"""Name → the shapes of image and filter, and attributes."""


def of_products() -> Iterator[Form]:
    """Products of matrices, convolutions, attention and recurrences."""
    for name, (image, filter_, attributes) in CONVOLUTIONS.items():
        yield Form(f"Conv {name}", "Conv", [floats(*image), floats(*filter_), floats(filter_[0])], attributes)
    pads = {"pads": [1] * 4}
    yield Form("Conv 3x3, filter of the call", "Conv", [MANY, floats(32, 32, 3, 3)], pads, inputs=2)
    yield Form("Conv 3x3, f16", "Conv", [MANY.astype("float16"), floats(32, 32, 3, 3, dtype="float16")], pads)
    yield Form("ConvTranspose", "ConvTranspose", [MANY, floats(32, 16, 3, 3)], {"strides": [2, 2]})
    yield Form("DeformConv", "DeformConv", [MANY, floats(8, 32, 3, 3), floats(8, 18, 26, 26)], inputs=3)
    image, kernel, points = codes(1, 32, 28, 28), codes(32, 32, 3, 3, dtype="int8"), [scale(0.02), zero(100)]
    operands = [image, *points, kernel, scale(0.01), zero(0, "int8"), scale(0.5), zero(99), codes(32, dtype="int32")]
    yield Form("QLinearConv", "QLinearConv", operands, pads)
    yield Form("ConvInteger", "ConvInteger", [image, kernel, zero(100)], pads)
    for rows in (1, 8, 128):
        yield Form(f"MatMul {rows}", "MatMul", [floats(rows, 384), floats(384, 512)])
    yield Form("MatMul of the call", "MatMul", [floats(128, 384), floats(384, 512)], inputs=2)
    yield Form("MatMul, heads", "MatMul", [HEADS, floats(12, 128, 32)], inputs=2)
    for dtype in ("float16", "float64", "int32"):
        yield Form(f"MatMul, {dtype}", "MatMul", [floats(32, 96, dtype=dtype), floats(96, 64, dtype=dtype)])
    yield Form("Gemm", "Gemm", [floats(16, 256), floats(100, 256), floats(100)], {"transB": 1})
    yield Form("MatMulInteger", "MatMulInteger", [codes(64, 256), codes(256, 100, dtype="int8"), zero(3)])
    weights = [codes(256, 100, dtype="int8"), scale(0.01), zero(0, "int8")]
    yield Form("QLinearMatMul", "QLinearMatMul", [codes(64, 256), *points, *weights, scale(0.5), zero(99)])
    blocks = {"K": 256, "N": 128, "bits": 4, "block_size": 32}
    quantized = [floats(4, 256), codes(128, 8, 16), floats(1024)]
    yield Form("MatMulNBits", "MatMulNBits", quantized, blocks, domain="com.microsoft")
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        operands = [floats(16, 2, 32), floats(1, gates * 64, 32), floats(1, gates * 64, 64)]
        yield Form(kind, kind, operands, {"hidden_size": 64})
    yield Form("Einsum", "Einsum", [floats(4, 32, 16), floats(4, 16, 24)], {"equation": "bij,bjk->bik"}, inputs=2)
    yield Form("DFT", "DFT", [floats(4, 64, 1), None, integers(1).reshape(())])
    yield Form("Det", "Det", [floats(10, 4, 4)])


BOUNDED = frozenset(
    "Relu|Gelu|Add, a row|QuantizeLinear|ReduceSum, rows|Softmax, middle|LayerNormalization|MaxPool 3x3|"
    "GlobalAveragePool|Resize up, nearest|Concat 1|Gather 0|Pad, constant|Conv 1x1|Conv 3x3|MatMul 128|Gemm|"
    "QLinearMatMul|QLinearConv".split("|")
)
"""The forms that are also compared with a bound on the first axis of their inputs."""


@cache
def forms() -> tuple[Form, ...]:
    """All forms; no two have one name."""
    plain = [form for family in (of_elements, of_rows, of_windows, of_places, of_products) for form in family()]
    bounded = [replace(form, name=f"{form.name}, N", bound=True) for form in plain if form.name in BOUNDED]
    return (*plain, *bounded)
