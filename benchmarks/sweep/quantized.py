"""Templates of operators on codes."""

from __future__ import annotations

from typing import Any

from sweep.drawing import Draw, draws
from sweep.points import ONNXRUNTIME, Application, Operand, given, weight

CODES = ("u8", "i8")


def _zero(dtype: str) -> Operand:
    return given(128 if dtype == "u8" else 0, dtype)


def _scale(value: float) -> Operand:
    return given(value, "f32")


def _codes(shape: Any, dtype: str) -> Operand:
    return Operand(shape, dtype, "codes")


@draws(CODES, "QuantizeLinear")
def quantize(draw: Draw, operator: str, dtype: str) -> Application:
    shape, given_as = draw.shape(3), draw.pick("f32", "f32", "f16")
    if draw.chance():
        rows = weight(shape[1:2], given_as, "from 0.01 0.1"), weight(shape[1:2], dtype, "from 0 5")
        return Application(operator, [Operand(shape, given_as), *rows], {"axis": 1})
    return Application(operator, [Operand(shape, given_as), given(0.03, given_as), _zero(dtype)])


@draws(("u8", "i8", "i32"), "DequantizeLinear")
def dequantize(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    fill = "codes" if dtype in CODES else "normal"
    if draw.chance():
        rows = [weight(shape[1:2], "f32", "from 0.01 0.1")]
        rows += [weight(shape[1:2], dtype, "from 0 5")] if dtype in CODES else []
        return Application(operator, [Operand(shape, dtype, fill), *rows], {"axis": 1})
    return Application(
        operator, [Operand(shape, dtype, fill), _scale(0.03), *([_zero(dtype)] if dtype in CODES else [])]
    )


@draws(CODES, "QuantizeLinear", "DequantizeLinear", domain=ONNXRUNTIME)
def codes_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    first = Operand(shape) if operator == "QuantizeLinear" else _codes(shape, dtype)
    return Application(operator, [first, _scale(0.03), _zero(dtype)], domain=ONNXRUNTIME)


@draws(("f32",), "DynamicQuantizeLinear")
def dynamic(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(3), dtype)], {}, 3)


@draws(CODES, "QLinearConv", "ConvInteger")
@draws(CODES, "QLinearConv", domain=ONNXRUNTIME)
def convolution(draw: Draw, operator: str, dtype: str) -> Application:
    groups, depth, filters = draw.pick((1, draw.size(3, 64), draw.size(3, 64)), (draw.size(3, 80), 1, 1))
    kernel, side = draw.pick(1, 3, 5), draw.size(9, 60)
    shape, strides = (1, groups * depth, side, side + 1), [draw.pick(1, 2)] * 2
    more: dict[str, Any] = {"group": groups, "strides": strides, "pads": [kernel // 2] * 4}
    weights = weight((groups * filters, depth, kernel, kernel), "i8" if operator == "QLinearConv" else "u8", "from 0 9")
    if operator == "ConvInteger":
        return Application(operator, [_codes(shape, "u8"), weights, given(128, "u8"), given(4, "u8")], more)
    scales = weight((groups * filters,), "f32", "from 0.01 0.02") if draw.chance() else _scale(0.01)
    zeros = weight((groups * filters,) if scales.shape else (), "i8", "from 0 1")
    operands = [_codes(shape, dtype), _scale(0.03), _zero(dtype), weights, scales, zeros, _scale(0.2), _zero(dtype)]
    return Application(operator, operands, more)


@draws(CODES, "QLinearMatMul", "MatMulInteger")
@draws(CODES, "MatMulIntegerToFloat", domain=ONNXRUNTIME)
def matmul(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.pick(1, 7, draw.size(9, 200)), draw.size(9, 700), draw.size(9, 500)
    left, right = _codes((rows, depth), dtype), weight((depth, columns), draw.pick("i8", dtype), "codes")
    zeros = _zero(dtype), _zero(right.dtype)
    match operator:
        case "MatMulInteger":
            return Application(operator, [left, right, *zeros])
        case "MatMulIntegerToFloat":
            operands = [left, right, _scale(0.03), _scale(0.01), *zeros, weight((columns,))]
            return Application(operator, operands, domain=ONNXRUNTIME)
        case _:
            operands = [left, _scale(0.03), zeros[0], right, _scale(0.01), zeros[1], _scale(0.3), _zero(dtype)]
            return Application(operator, operands)


@draws(("i16",), "MatMulInteger16", domain=ONNXRUNTIME)
def matmul_of_16_bits(draw: Draw, operator: str, dtype: str) -> Application:
    depth = draw.size(9, 200)
    operands = [Operand((draw.size(3, 90), depth), dtype), Operand((depth, draw.size(9, 200)), dtype)]
    return Application(operator, operands, domain=ONNXRUNTIME)


@draws(CODES, "DynamicQuantizeMatMul", domain=ONNXRUNTIME)
def dynamic_matmul(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.pick(1, 7, draw.size(9, 200)), draw.size(9, 700), draw.size(9, 500)
    right = weight((depth, columns), dtype, "codes")
    return Application(operator, [Operand((rows, depth)), right, _scale(0.01), _zero(dtype)], domain=ONNXRUNTIME)


@draws(CODES, "QGemm", domain=ONNXRUNTIME)
def gemm(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.pick(1, 7, draw.size(9, 200)), draw.size(9, 700), draw.size(9, 500)
    right = weight((columns, depth), dtype, "codes")
    sides = [_codes((rows, depth), dtype), _scale(0.03), _zero(dtype), right, _scale(0.01), _zero(dtype)]
    operands = [*sides, weight((columns,), "i32"), _scale(0.3), _zero(dtype)]
    return Application(operator, operands, {"transB": 1}, domain=ONNXRUNTIME)


@draws(CODES, "QLinearAdd", "QLinearMul", domain=ONNXRUNTIME)
def binary(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(4)
    first, other = _codes(shape, dtype), _codes(draw.broadcast(shape), dtype)
    rest = _scale(0.03), _zero(dtype)
    return Application(operator, [first, *rest, other, *rest, *rest], domain=ONNXRUNTIME)


@draws(CODES, "QLinearSigmoid", "QLinearLeakyRelu", domain=ONNXRUNTIME)
def unary(draw: Draw, operator: str, dtype: str) -> Application:
    more = {"alpha": 0.1} if operator == "QLinearLeakyRelu" else {}
    operands = [_codes(draw.shape(), dtype), _scale(0.03), _zero(dtype), _scale(0.01), _zero(dtype)]
    return Application(operator, operands, more, domain=ONNXRUNTIME)


@draws(CODES, "QLinearSoftmax", domain=ONNXRUNTIME)
def softmax(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=4)
    operands = [
        _codes(shape, dtype),
        _scale(0.03),
        _zero(dtype),
        _scale(1 / 256),
        given(0 if dtype == "u8" else -128, dtype),
    ]
    return Application(operator, operands, {"opset": 13, "axis": -1}, domain=ONNXRUNTIME)


@draws(CODES, "QLinearAveragePool", "QLinearGlobalAveragePool", domain=ONNXRUNTIME)
def pool(draw: Draw, operator: str, dtype: str) -> Application:
    shape = (1, draw.size(3, 90), draw.size(7, 60), draw.size(7, 60))
    operands = [_codes(shape, dtype), _scale(0.03), _zero(dtype), _scale(0.03), _zero(dtype)]
    more: dict[str, Any] = {"channels_last": 0}
    if operator == "QLinearAveragePool":
        more = {"kernel_shape": [draw.pick(2, 3, 5)] * 2, "strides": [draw.pick(1, 2)] * 2}
    return Application(operator, operands, more, domain=ONNXRUNTIME)


@draws(CODES, "QLinearConcat", domain=ONNXRUNTIME)
def concat(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    parts = [part for step in (0.02, 0.03, 0.04) for part in (_codes(shape, dtype), _scale(step), _zero(dtype))]
    return Application(operator, [_scale(0.03), _zero(dtype), *parts], {"axis": 1}, domain=ONNXRUNTIME)


@draws(CODES, "QLinearWhere", domain=ONNXRUNTIME)
def where(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    rest = _scale(0.03), _zero(dtype)
    operands = [Operand(shape, "bool"), _codes(shape, dtype), _scale(0.02), _zero(dtype), _codes(shape, dtype), *rest]
    return Application(operator, [*operands, *rest], domain=ONNXRUNTIME)


@draws(("f32",), "MatMulNBits", domain=ONNXRUNTIME)
def matmul_of_few_bits(draw: Draw, operator: str, dtype: str) -> Application:
    rows, blocks, block, columns = draw.pick(1, 1, 7, 40), draw.size(2, 24), draw.pick(16, 32, 64), draw.size(33, 600)
    more = {"K": blocks * block, "N": columns, "bits": 4, "block_size": block}
    operands = [
        Operand((rows, blocks * block), dtype),
        weight((columns, blocks, block // 2), "u8", "codes"),
        weight((columns, blocks), dtype, "from 0.01 0.02"),
    ]
    return Application(operator, operands, more, domain=ONNXRUNTIME)


@draws(("f32",), "MatMulBnb4", domain=ONNXRUNTIME)
def matmul_of_4_bit_floats(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.pick(1, 7, 40), 64 * draw.size(2, 12), draw.size(33, 600)
    more = {"K": depth, "N": columns, "block_size": 64, "quant_type": draw.pick(0, 1)}
    count = depth * columns
    scales = weight((count // 64,), dtype, "from 0.01 0.02")
    return Application(
        operator, [Operand((rows, depth), dtype), weight((count // 2,), "u8", "codes"), scales], more, 1, ONNXRUNTIME
    )


@draws(("u8",), "GatherBlockQuantized", domain=ONNXRUNTIME)
def gather_blocks(draw: Draw, operator: str, dtype: str) -> Application:
    rows, blocks = draw.size(100, 2000), draw.size(2, 16)
    table = weight((rows, blocks * 16), dtype, "codes")
    scales = weight((rows, blocks), "f32", "from 0.01 0.02")
    more = {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    indices = Operand((draw.size(3, 300),), "i64", f"from 0 {rows}")
    return Application(operator, [table, indices, scales], more, domain=ONNXRUNTIME)


@draws(CODES, "QAttention", domain=ONNXRUNTIME)
def attention(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, rows, width = draw.pick(1, 2), draw.pick(2, 5), draw.size(5, 100), draw.size(17, 200)
    hidden = heads * draw.pick(16, 32)
    sides = [_codes((batch, rows, width), "u8"), weight((width, 3 * hidden), dtype, "codes"), weight((3 * hidden,))]
    operands = [*sides, _scale(0.02), _scale(0.005), None, given(128, "u8"), _zero(dtype)]
    return Application(operator, operands, {"num_heads": heads}, domain=ONNXRUNTIME)


@draws(("u8",), "QEmbedLayerNormalization", domain=ONNXRUNTIME)
def embedding(draw: Draw, operator: str, dtype: str) -> Application:
    batch, rows, width = draw.pick(1, 3), draw.size(5, 100), draw.size(33, 300)
    ids = Operand((batch, rows), "i32", "from 0 500"), Operand((batch, rows), "i32", "from 0 2")
    tables = (weight((size, width), dtype, "codes") for size in (500, rows + 3, 2))
    row = weight((width,), dtype, "codes")
    operands = [*ids, *tables, row, row, None, *[_scale(0.02)] * 5, *[_zero(dtype)] * 5]
    return Application(operator, operands, {}, 2, ONNXRUNTIME)


@draws(("u8",), "QMoE", domain=ONNXRUNTIME)
def experts(draw: Draw, operator: str, dtype: str) -> Application:
    rows, width, inner, count = draw.pick(1, 5, 40), 32 * draw.size(1, 6), 32 * draw.size(1, 8), 4
    first, second = weight((count, inner, width // 2), "u8", "codes"), weight((count, width, inner // 2), "u8", "codes")
    scales = weight((count, inner), "f32", "from 0.01 0.02"), weight((count, width), "f32", "from 0.01 0.02")
    operands = [Operand((rows, width)), Operand((rows, count)), first, scales[0], None, second, scales[1]]
    more = {"k": 2, "activation_type": draw.pick("relu", "silu"), "expert_weight_bits": 4}
    return Application(operator, operands, more, domain=ONNXRUNTIME)
