"""Templates of products, recurrences, transforms and attention."""

from __future__ import annotations

from typing import Any

from sweep.drawing import Draw, draws
from sweep.points import ONNXRUNTIME, Application, Operand, given, weight


@draws(("f32", "f32", "f16", "f64", "i32", "i64"), "MatMul")
def matmul(draw: Draw, operator: str, dtype: str) -> Application:
    """Few rows and many, one matrix or several, the right one a constant half the time."""
    rows, depth, columns = draw.pick(1, 2, 7, draw.size(9, 300)), draw.size(9, 500), draw.pick(1, draw.size(9, 500))
    batch = draw.pick((), (), (draw.size(2, 12),), (2, draw.size(2, 6)))
    shared = draw.chance()
    right = Operand((depth, columns) if shared else (*batch, depth, columns), dtype, constant=shared and draw.chance())
    return Application(operator, [Operand((*batch, rows, depth), dtype), right])


@draws(("f32", "f32", "f64", "f16"), "Gemm")
def gemm(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.pick(1, 4, draw.size(9, 300)), draw.size(9, 600), draw.size(9, 600)
    across, down = draw.pick(0, 1), draw.pick(0, 1)
    left = (depth, rows) if across else (rows, depth)
    right = Operand((columns, depth) if down else (depth, columns), dtype, constant=draw.chance(0.7))
    bias = draw.pick(None, weight((columns,), dtype), weight((rows, 1), dtype), Operand((rows, columns), dtype))
    more: dict[str, Any] = {"transA": across, "transB": down, "alpha": draw.pick(1.0, 0.5), "beta": draw.pick(1.0, 2.0)}
    return Application(operator, [Operand(left, dtype), right, bias] if bias else [Operand(left, dtype), right], more)


@draws(("f32",), "FusedGemm", domain=ONNXRUNTIME)
def fused_gemm(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns = draw.size(3, 300), draw.size(9, 600), draw.size(9, 600)
    operands = [Operand((rows, depth), dtype), weight((depth, columns), dtype), weight((columns,), dtype)]
    return Application(operator, operands, {"activation": draw.pick("Relu", "Tanh", "Sigmoid")}, domain=ONNXRUNTIME)


@draws(("f32", "f64"), "FusedMatMul", domain=ONNXRUNTIME)
@draws(("f32",), "TransposeMatMul", domain=ONNXRUNTIME)
def fused_matmul(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth, columns, batch = draw.size(2, 200), draw.size(9, 300), draw.size(9, 300), draw.size(1, 8)
    across, down = draw.pick(0, 1), draw.pick(0, 1)
    left = (batch, depth, rows) if across else (batch, rows, depth)
    right = (batch, columns, depth) if down else (batch, depth, columns)
    more = {"transA": across, "transB": down, "alpha": 0.5}
    return Application(operator, [Operand(left, dtype), Operand(right, dtype)], more, domain=ONNXRUNTIME)


EQUATIONS = ("bij,bjk->bik", "bhqd,bhkd->bhqk", "ij,kj->ik", "bi,bj->bij", "ijk->kji", "bij,bij->b", "bhwc,hkc->bhwk")


@draws(("f32", "f64", "i32", "f16"), "Einsum")
def einsum(draw: Draw, operator: str, dtype: str) -> Application:
    equation = draw.pick(*EQUATIONS)
    terms = equation.split("->")[0].split(",")
    sizes = {letter: draw.size(5, 48) for letter in "".join(terms)}
    operands = [Operand(tuple(sizes[letter] for letter in term), dtype) for term in terms]
    return Application(operator, operands, {"equation": equation})


@draws(("f32",), "Det")
def determinant(draw: Draw, operator: str, dtype: str) -> Application:
    size = draw.size(3, 90)
    return Application(operator, [Operand((draw.size(1, 20), size, size), dtype)])


@draws(("f32", "f64"), "Inverse", domain=ONNXRUNTIME)
def inverse(draw: Draw, operator: str, dtype: str) -> Application:
    size = draw.size(3, 60)
    return Application(operator, [Operand((draw.size(1, 20), size, size), dtype)], domain=ONNXRUNTIME)


@draws(("f32", "f64"), "CDist", domain=ONNXRUNTIME)
def distances(draw: Draw, operator: str, dtype: str) -> Application:
    depth = draw.size(3, 100)
    operands = [Operand((draw.size(9, 300), depth), dtype), Operand((draw.size(9, 300), depth), dtype)]
    return Application(operator, operands, {"metric": draw.pick("sqeuclidean", "euclidean")}, domain=ONNXRUNTIME)


@draws(("f32", "f64"), "DFT")
def fourier(draw: Draw, operator: str, dtype: str) -> Application:
    length = draw.pick(64, 100, 512, 243, 1024, 131)
    more = {"onesided": draw.pick(0, 1)}
    return Application(operator, [Operand((draw.size(3, 60), length, 1), dtype), None, given(1)], more)


@draws(("f32", "f64"), "STFT")
def short_fourier(draw: Draw, operator: str, dtype: str) -> Application:
    frame = draw.pick(128, 400, 512)
    window = weight((frame,), dtype, "from 0 1")
    signal = Operand((draw.size(1, 4), draw.size(3000, 30000), 1), dtype)
    return Application(operator, [signal, given(draw.pick(64, 160)), window, given(frame)])


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@draws(("f32", "f32", "f64"), *GATES)
def recurrence(draw: Draw, operator: str, dtype: str) -> Application:
    steps, batch, width, hidden = draw.size(3, 60), draw.pick(1, 3, 8), draw.size(9, 128), draw.size(9, 128)
    way = draw.pick("forward", "forward", "reverse", "bidirectional")
    count, rows = 1 + (way == "bidirectional"), GATES[operator] * hidden
    weights = [
        weight((count, rows, width), dtype, "from -0.1 0.1"),
        weight((count, rows, hidden), dtype, "from -0.1 0.1"),
    ]
    bias = weight((count, 2 * rows), dtype, "from -0.1 0.1")
    more: dict[str, Any] = {"hidden_size": hidden, "direction": way}
    if operator == "GRU":
        more["linear_before_reset"] = draw.pick(0, 1)
    lengths = Operand((batch,), "i32", f"from 1 {steps + 1}") if draw.chance(0.25) else None
    operands = [Operand((steps, batch, width), dtype), *weights, bias, *([lengths] if lengths else [])]
    return Application(operator, operands, more, 2)


@draws(("f32",), "DynamicQuantizeLSTM", domain=ONNXRUNTIME)
def quantized_lstm(draw: Draw, operator: str, dtype: str) -> Application:
    steps, batch, width, hidden = draw.size(3, 60), draw.pick(1, 3, 8), draw.size(9, 128), draw.size(9, 128)
    codes = draw.pick("u8", "i8")
    weights = [weight((1, size, 4 * hidden), codes, "codes") for size in (width, hidden)]
    scale, zero = given([0.005], "f32"), given([0 if codes == "i8" else 128], codes)
    operands = [Operand((steps, batch, width), dtype), *weights, weight((1, 8 * hidden)), None, None, None, None]
    return Application(operator, [*operands, scale, zero, scale, zero], {"hidden_size": hidden}, 2, ONNXRUNTIME)


@draws(("f32", "f16", "f32"), "Attention")
def attention(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, queries, keys = draw.pick(1, 2), draw.pick(2, 5, 8), draw.size(1, 150), draw.size(9, 300)
    depth = draw.pick(16, 40, 64)
    groups = heads if draw.chance() else 1
    mask = [Operand((queries, keys), dtype)] if draw.chance(0.4) else []
    shapes = (batch, heads, queries, depth), *[(batch, groups, keys, depth)] * 2
    more = {"is_causal": draw.pick(0, 1)} if not mask else {}
    return Application(operator, [*(Operand(shape, dtype) for shape in shapes), *mask], more)


@draws(("f32", "f16"), "MultiHeadAttention", domain=ONNXRUNTIME)
def multi_head(draw: Draw, operator: str, dtype: str) -> Application:
    dtype = "f32"
    batch, heads, queries, keys = draw.pick(1, 2), draw.pick(2, 5, 8), draw.size(1, 150), draw.size(9, 300)
    width = heads * draw.pick(16, 40, 64)
    operands = [Operand((batch, rows, width), dtype) for rows in (queries, keys, keys)]
    return Application(operator, operands, {"num_heads": heads}, domain=ONNXRUNTIME)


@draws(("f32",), "Attention", domain=ONNXRUNTIME)
def attention_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, rows, width = draw.pick(1, 2), draw.pick(2, 5), draw.size(5, 200), draw.size(17, 200)
    hidden = heads * draw.pick(16, 32)
    operands = [Operand((batch, rows, width), dtype), weight((width, 3 * hidden), dtype), weight((3 * hidden,), dtype)]
    return Application(operator, operands, {"num_heads": heads, "unidirectional": draw.pick(0, 1)}, domain=ONNXRUNTIME)


@draws(("f32", "f16"), "GroupQueryAttention", domain=ONNXRUNTIME)
def group_query(draw: Draw, operator: str, dtype: str) -> Application:
    """A prompt, or one token behind what is kept."""
    groups, depth, times = draw.pick(1, 2), draw.pick(32, 64), draw.pick(1, 2, 4)
    rows, past = draw.pick((1, draw.size(20, 400)), (draw.size(9, 120), 0))
    query = Operand((1, rows, groups * times * depth), dtype)
    key = Operand((1, rows, groups * depth), dtype)
    kept = Operand((1, groups, past, depth), dtype)
    lengths = Operand((1,), "i32", "", False, [rows + past - 1]), given(rows + past, "i32")
    more = {"num_heads": groups * times, "kv_num_heads": groups}
    return Application(operator, [query, key, key, kept, kept, *lengths], more, 3, ONNXRUNTIME)


@draws(("f32",), "DecoderMaskedMultiHeadAttention", domain=ONNXRUNTIME)
def decoder_attention(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, depth, past = draw.pick(1, 2), draw.pick(2, 5, 8), draw.pick(32, 64), draw.size(20, 300)
    row, kept = Operand((batch, 1, heads * depth), dtype), Operand((batch, heads, past + 1, depth), dtype)
    operands = [row, row, row, None, None, kept, kept, Operand((1,), "i32", "", False, [past])]
    more = {"num_heads": heads, "past_present_share_buffer": 1}
    return Application(operator, operands, more, 3, ONNXRUNTIME)


@draws(("f32", "f16"), "RotaryEmbedding")
def rotary(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, rows, depth = draw.pick(1, 3), draw.size(2, 16), draw.size(3, 300), draw.pick(32, 64, 80)
    caches = [weight((rows + 9, depth // 2), dtype)] * 2
    positions = Operand((batch, rows), "i64", f"from 0 {rows}")
    more = {"interleaved": draw.pick(0, 1)}
    return Application(operator, [Operand((batch, heads, rows, depth), dtype), *caches, positions], more)


@draws(("f32", "f16"), "RotaryEmbedding", domain=ONNXRUNTIME)
def rotary_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    value, cosines, sines, positions = rotary(draw, operator, dtype).operands
    more = {"interleaved": draw.pick(0, 1)}
    return Application(operator, [value, positions, cosines, sines], more, domain=ONNXRUNTIME)


@draws(("f32",), "LinearAttention", domain=ONNXRUNTIME)
def linear_attention(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, rows, depth = draw.pick(1, 2), draw.pick(2, 4), draw.pick(1, draw.size(5, 80)), draw.pick(16, 32, 64)
    value = Operand((batch, rows, heads * depth), dtype, "from -0.2 0.2")
    more = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": "linear"}
    return Application(operator, [value, value, value], more, 2, ONNXRUNTIME)


@draws(("f32",), "CausalConvWithState", domain=ONNXRUNTIME)
def causal_convolution(draw: Draw, operator: str, dtype: str) -> Application:
    batch, channels, rows, taps = draw.pick(1, 2), draw.size(16, 300), draw.pick(1, draw.size(9, 400)), draw.pick(3, 4)
    operands = [Operand((batch, channels, rows), dtype), weight((channels, 1, taps), dtype), weight((channels,), dtype)]
    more = {"activation": draw.pick("none", "silu")}
    return Application(operator, operands, more, 2, ONNXRUNTIME)


@draws(("f32",), "EmbedLayerNormalization", domain=ONNXRUNTIME)
def embedding(draw: Draw, operator: str, dtype: str) -> Application:
    batch, rows, width = draw.pick(1, 3), draw.size(5, 200), draw.size(33, 500)
    ids = Operand((batch, rows), "i32", "from 0 500"), Operand((batch, rows), "i32", "from 0 2")
    tables = (weight((size, width), dtype) for size in (500, rows + 3, 2))
    return Application(operator, [*ids, *tables, *[weight((width,), dtype)] * 2], {}, 2, ONNXRUNTIME)


@draws(("f32",), "MoE", domain=ONNXRUNTIME)
def experts(draw: Draw, operator: str, dtype: str) -> Application:
    rows, width, inner, count = draw.pick(1, 5, 40), 8 * draw.size(4, 16), 8 * draw.size(4, 24), draw.pick(4, 8)
    first, second = weight((count, inner, width), dtype), weight((count, width, inner), dtype)
    operands = [Operand((rows, width), dtype), Operand((rows, count), dtype), first, None, second]
    more = {"k": 2, "activation_type": draw.pick("relu", "silu", "gelu"), "normalize_routing_weights": 1}
    return Application(operator, operands, more, domain=ONNXRUNTIME)


@draws(("f32",), "DynamicTimeWarping", domain=ONNXRUNTIME)
def warping(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand((draw.size(20, 200), draw.size(20, 200)), dtype)], domain=ONNXRUNTIME)


@draws(("i64",), "BifurcationDetector", domain=ONNXRUNTIME)
def bifurcation(draw: Draw, operator: str, dtype: str) -> Application:
    length = draw.size(100, 3000)
    operands = [Operand((size,), dtype, "from 0 50") for size in (length, length // 2)]
    return Application(operator, [*operands, given(0)], {}, 2, ONNXRUNTIME)


@draws(("i32",), "WordConvEmbedding", domain=ONNXRUNTIME)
def word_embedding(draw: Draw, operator: str, dtype: str) -> Application:
    words, letters, width, filters = draw.size(5, 60), draw.size(8, 20), draw.size(5, 30), draw.size(9, 90)
    tables = weight((filters, 1, 5, width)), weight((filters,)), weight((100, width))
    return Application(operator, [Operand((words, letters), dtype, "from 1 100"), *tables], domain=ONNXRUNTIME)


@draws(("f32",), "MRotaryEmbedding", domain=ONNXRUNTIME)
def rotary_of_several_axes(draw: Draw, operator: str, dtype: str) -> Application:
    heads, rows, depth = draw.size(2, 16), draw.size(3, 200), draw.pick(32, 64)
    caches = [weight((rows + 9, depth // 2), dtype)] * 2
    more = {"mrope_section": [depth // 4, depth // 8, depth // 8], "num_heads": heads}
    operands = [Operand((1, heads, rows, depth), dtype), Operand((3, 1, rows), "i64", f"from 0 {rows}"), *caches]
    return Application(operator, operands, more, domain=ONNXRUNTIME)


@draws(("f32",), "LinearAttentionGate", domain=ONNXRUNTIME)
def linear_attention_gate(draw: Draw, operator: str, dtype: str) -> Application:
    heads = draw.size(4, 64)
    operands = [Operand((draw.size(1, 4), draw.size(9, 500), heads), dtype), *[weight((heads,), dtype)] * 2]
    return Application(operator, operands, {}, 1, ONNXRUNTIME)


@draws(("f32",), "MoEGroupRouter", domain=ONNXRUNTIME)
def router(draw: Draw, operator: str, dtype: str) -> Application:
    count = 8 * draw.size(2, 16)
    operands = [Operand((draw.size(9, 500), count), dtype), weight((count,), dtype)]
    more = {"n_group": 4, "topk_group": 2, "top_k": 4}
    return Application(operator, operands, more, 1, ONNXRUNTIME)


@draws(("f32", "f16"), "HyperConnectionPreMix", "HyperConnectionPostMix", domain=ONNXRUNTIME)
def hyper_connections(draw: Draw, operator: str, dtype: str) -> Application:
    batch, rows, width = draw.size(1, 3), draw.size(3, 100), draw.size(33, 500)
    streams, mix = Operand((batch, rows, 4 * width), dtype), Operand((batch, rows, 4), dtype)
    operands = [streams, mix] if operator.endswith("PreMix") else [streams, Operand((batch, rows, width), dtype), mix]
    return Application(operator, operands, {"num_branches": 4}, 1, ONNXRUNTIME)
