"""Templates of operators that move, choose, sort and make elements, and of sequences and control flow."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from sweep.drawing import EVERYTHING, FLOATS, NUMBERS, Draw, draws
from sweep.points import ELEMENTS, ONNXRUNTIME, Application, Operand, given


@draws(EVERYTHING, "Transpose")
def transpose(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 5))
    return Application(operator, [Operand(shape, dtype)], {"perm": draw.random.permutation(len(shape)).tolist()})


@draws(EVERYTHING, "Concat")
def concat(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 4))
    axis = draw.axis(len(shape))
    parts = [list(shape) for _ in range(draw.size(2, 5))]
    for part in parts:
        part[axis] = draw.size(1, max(2, shape[axis]))
    return Application(operator, [Operand(part, dtype) for part in parts], {"axis": axis})


@draws(EVERYTHING, "Split")
def split(draw: Draw, operator: str, dtype: str) -> Application:
    shape = list(draw.shape(draw.size(1, 4)))
    axis = draw.axis(len(shape))
    parts = [draw.size(1, max(2, shape[axis])) for _ in range(draw.size(2, 5))]
    shape[axis] = sum(parts)
    return Application(operator, [Operand(shape, dtype), given(parts)], {"axis": axis}, len(parts))


@draws(EVERYTHING, "Slice")
def slice_(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 4), cost=0.5)
    axes = draw.axes(len(shape))
    starts, ends = [shape[axis] // 7 for axis in axes], [shape[axis] - shape[axis] // 9 for axis in axes]
    steps = [draw.pick(1, 1, 2, 3) for _ in axes]
    return Application(operator, [Operand(shape, dtype), *map(given, (starts, ends, axes, steps))])


@draws(EVERYTHING, "Pad")
def pad(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    mode = draw.pick("constant", "constant", "reflect", "edge", "wrap")
    pads = [min(draw.pick(0, 1, 2, 7), size - 1) for size in (*shape, *shape)]
    return Application(operator, [Operand(shape, dtype), given(pads)], {"mode": mode})


@draws(("f32",), "Pad", domain=ONNXRUNTIME)
def pad_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    pads = [draw.pick(0, 1, 2, 7) for _ in (*shape, *shape)]
    return Application(operator, [Operand(shape, dtype), given(pads)], {"mode": "constant"}, domain=ONNXRUNTIME)


@draws(EVERYTHING, "Tile")
def tile(draw: Draw, operator: str, dtype: str) -> Application:
    dtype = "f32" if dtype == "f16" else dtype
    shape = draw.shape(draw.size(1, 4), cost=4)
    return Application(operator, [Operand(shape, dtype), given([draw.pick(1, 2, 3) for _ in shape])])


@draws(EVERYTHING, "Expand")
def expand(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    first = tuple(size if draw.chance(0.6) else 1 for size in shape)
    return Application(operator, [Operand(first, dtype), given(shape)])


@draws(EVERYTHING, "Reshape")
def reshape(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    return Application(operator, [Operand(shape, dtype), given([-1, *shape[2:]])])


@draws(EVERYTHING, "Flatten")
def flatten(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(4), dtype)], {"axis": draw.pick(0, 1, 2, -1)})


@draws(EVERYTHING, "Squeeze", "Unsqueeze")
def squeeze(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(2, 4))
    shape = (shape[0], 1, *shape[1:]) if operator == "Squeeze" else shape
    return Application(operator, [Operand(shape, dtype), given([1])])


@draws(("f32", "i64"), "ExpandDims", domain=ONNXRUNTIME)
def expand_dims(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(3), dtype), given(1, "i32")], domain=ONNXRUNTIME)


@draws(EVERYTHING, "Gather")
def gather(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 3), cost=0.25)
    axis = draw.axis(len(shape))
    chosen = draw.shape(draw.pick(1, 2), cost=max(4, np.prod(shape) / shape[axis]))
    indices = Operand(chosen, draw.pick("i64", "i32"), f"from {-shape[axis]} {shape[axis]}")
    return Application(operator, [Operand(shape, dtype), indices], {"axis": axis})


@draws(EVERYTHING, "GatherElements")
def gather_elements(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 4), cost=4)
    axis = draw.axis(len(shape))
    indices = Operand(shape, draw.pick("i64", "i32"), f"from 0 {shape[axis]}")
    return Application(operator, [Operand(shape, dtype), indices], {"axis": axis})


@draws(EVERYTHING, "GatherND")
def gather_nd(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=2)
    depth = draw.pick(1, 2, 3)
    rows = max(1, int(np.prod(shape)) // int(np.prod(shape[depth:])))
    indices = Operand((rows, depth), "i64", f"places {' '.join(map(str, shape[:depth]))}")
    return Application(operator, [Operand(shape, dtype), indices])


@draws(("f32", "i64"), "GatherND", domain=ONNXRUNTIME)
def gather_nd_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    found = gather_nd(draw, operator, dtype)
    return Application(operator, found.operands, domain=ONNXRUNTIME)


@draws(EVERYTHING, "Scatter", "ScatterElements")
def scatter_elements(draw: Draw, operator: str, dtype: str) -> Application:
    shape = list(draw.shape(2, cost=4))
    shape = [shape[0], max(shape[1], 2)]
    rows = [shape[0], max(1, shape[1] // 2)]
    more: dict[str, object] = {"axis": 1}
    if operator == "ScatterElements" and dtype != "bool":
        more["reduction"] = draw.pick("none", "add", "max", "mul")
    return Application(
        operator, [Operand(shape, dtype), Operand(rows, "i64", f"distinct {shape[1]}"), Operand(rows, dtype)], more
    )


@draws(EVERYTHING, "ScatterND")
def scatter_nd(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3, cost=2)
    depth = draw.pick(1, 2, 3)
    rows = max(1, int(np.prod(shape[:depth])) // 2)
    indices = Operand((rows, depth), "i64", f"places {' '.join(map(str, shape[:depth]))}")
    more = {"reduction": draw.pick("none", "none", "add", "max")} if dtype != "bool" else {}
    return Application(operator, [Operand(shape, dtype), indices, Operand((rows, *shape[depth:]), dtype)], more)


@draws(("f32", "f16"), "TensorScatter")
def tensor_scatter(draw: Draw, operator: str, dtype: str) -> Application:
    batch, heads, length, depth = draw.pick(1, 3), draw.pick(4, 8), draw.size(65, 700), draw.pick(32, 64, 80)
    rows = draw.pick(1, 5, 17)
    operands = [Operand((batch, heads, length, depth), dtype), Operand((batch, heads, rows, depth), dtype)]
    return Application(operator, [*operands, Operand((batch,), "i64", f"from 0 {length - rows}")], {"axis": -2})


@draws(EVERYTHING, "Compress")
def compress(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(draw.size(1, 3))
    axis = draw.axis(len(shape))
    return Application(operator, [Operand(shape, dtype), Operand((shape[axis],), "bool")], {"axis": axis})


@draws(("f32", "i64", "bool", "u8", "i32"), "NonZero")
def non_zero(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(draw.size(1, 3), cost=4), dtype, f"share {draw.pick(0.05, 0.5)}")])


@draws(("f32", "i64", "i32"), "OneHot")
def one_hot(draw: Draw, operator: str, dtype: str) -> Application:
    rows, depth = draw.shape(2)
    values = Operand((2,), dtype, "", True, [0, 1])
    indices = Operand((rows,), "i64", f"from 0 {depth}")
    return Application(operator, [indices, given(depth), values], {"axis": draw.pick(-1, 0)})


@draws(("f32", "f64", "i32", "i64", "bool"), "Trilu")
def trilu(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(
        operator, [Operand(draw.shape(draw.pick(2, 3)), dtype), given(draw.pick(-1, 0, 2))], {"upper": draw.pick(0, 1)}
    )


@draws(("f32", "f64", "i64"), "Trilu", domain=ONNXRUNTIME)
def trilu_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    found = trilu(draw, operator, dtype)
    return Application(operator, found.operands, found.attributes, domain=ONNXRUNTIME)


@draws(("f32", "f64", "i32", "i64"), "EyeLike")
def eye_like(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(2), dtype)], {"k": draw.pick(-1, 0, 2)})


@draws(("f32", "f16", "i64", "u8", "bool"), "ConstantOfShape")
def constant_of_shape(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    value = numpy_helper.from_array(np.array([1], ELEMENTS[dtype]))
    return Application(operator, [Operand((3,), "i64", "", False, list(shape))], {"value": value})


@draws(("f32", "f64", "i32", "i64"), "Range")
def range_(draw: Draw, operator: str, dtype: str) -> Application:
    (size,) = draw.shape(1)
    numbers = (Operand((), dtype, "", False, [value]) for value in (0, size, draw.pick(1, 2)))
    return Application(operator, [*numbers])


@draws(("f32", "i32", "i64"), "Range", domain=ONNXRUNTIME)
def range_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, range_(draw, operator, dtype).operands, domain=ONNXRUNTIME)


@draws(EVERYTHING, "Shape", "Size")
def shape_of(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(), dtype)])


@draws(EVERYTHING, "ReverseSequence")
def reverse_sequence(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(3)
    lengths = Operand((shape[1],), "i64", f"from 1 {shape[0] + 1}")
    return Application(operator, [Operand(shape, dtype), lengths], {"time_axis": 0, "batch_axis": 1})


@draws(NUMBERS, "TopK")
def top_k(draw: Draw, operator: str, dtype: str) -> Application:
    rows, width = draw.pick(1, 1, 7, 64, 129), draw.size(33, 20000)
    width = min(width, 200000 // rows)
    k = draw.pick(1, 5, 40, width // 3, width)
    more = {"largest": draw.pick(0, 1, 1), "sorted": draw.pick(0, 1, 1)}
    return Application(operator, [Operand((rows, width), dtype, _spread(dtype)), given([min(k, width)])], more, 2)


def _spread(dtype: str) -> str:
    """Elements of which few are equal, as far as the type allows."""
    if dtype in FLOATS:
        return "normal"
    return "codes" if dtype in ("i8", "u8") else "from 0 1000000"


@draws(("f32", "i64", "i8", "f64"), "Unique")
def unique(draw: Draw, operator: str, dtype: str) -> Application:
    fill = draw.pick(_spread(dtype), "from 0 100") if dtype in ("i64", "f32") else _spread(dtype)
    return Application(
        operator, [Operand((draw.size(500, 50000),), dtype, fill)], {"sorted": draw.pick(0, 1, 1)}, draw.pick(1, 4)
    )


@draws(("f32",), "Unique", domain=ONNXRUNTIME)
def unique_of_onnxruntime(draw: Draw, operator: str, dtype: str) -> Application:
    operands = [Operand((draw.size(500, 50000),), dtype, "from 0 100")]
    return Application(operator, operands, {}, 3, ONNXRUNTIME)


@draws(("f32",), "NonMaxSuppression")
def non_max_suppression(draw: Draw, operator: str, dtype: str) -> Application:
    boxes, classes = draw.size(100, 3000), draw.pick(1, 3, 20)
    operands = [Operand((1, boxes, 4), dtype, "boxes 1"), Operand((1, classes, boxes), dtype, "from 0 1")]
    return Application(operator, [*operands, given([draw.pick(20, 200)]), *(given([n], "f32") for n in (0.5, 0.3))])


@draws(("f32", "f64", "f16"), "RandomNormalLike", "RandomUniformLike")
def random_like(draw: Draw, operator: str, dtype: str) -> Application:
    dtype = "f32" if dtype == "f16" else dtype
    return Application(operator, [Operand(draw.shape(cost=8), dtype)], {"seed": 1.0})


@draws(("f32",), "RandomNormal", "RandomUniform")
def random(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [], {"shape": list(draw.shape(2, cost=8)), "seed": 1.0})


@draws(("f32",), "Multinomial")
def multinomial(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(
        operator, [Operand((draw.size(2, 40), draw.size(9, 500)), dtype)], {"sample_size": 17, "seed": 1.0}
    )


@draws(("i32",), "HannWindow", "HammingWindow", "BlackmanWindow")
def window(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand((), dtype, "", False, [draw.size(1000, 30000)])])


@draws(("i32",), "MelWeightMatrix")
def mel_weights(draw: Draw, operator: str, dtype: str) -> Application:
    sizes = (Operand((), dtype, "", False, [size]) for size in (draw.size(20, 80), 1024, 16000))
    limits = (Operand((), "f32", "", False, [limit]) for limit in (20.0, 7600.0))
    return Application(operator, [*sizes, *limits])


@draws(("string",), "StringConcat")
def string_concat(draw: Draw, operator: str, dtype: str) -> Application:
    shape = draw.shape(2, cost=64)
    return Application(operator, [Operand(shape, dtype)] * 2)


@draws(("string",), "StringNormalizer")
def string_normalizer(draw: Draw, operator: str, dtype: str) -> Application:
    more = {"case_change_action": draw.pick("LOWER", "UPPER"), "stopwords": ["the"], "locale": "C"}
    return Application(operator, [Operand((draw.size(50, 500),), dtype)], more)


@draws(("string",), "StringSplit")
def string_split(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand((draw.size(50, 2000),), dtype)], {"delimiter": " "}, 2)


@draws(("string",), "RegexFullMatch")
def regex(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand((draw.size(50, 2000),), dtype)], {"pattern": "[a-z ]+"})


@draws(("i64", "i32"), "TfIdfVectorizer")
def tf_idf(draw: Draw, operator: str, dtype: str) -> Application:
    pool = draw.random.integers(0, 50, 200).tolist()
    more = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": draw.pick(0, 2)}
    more |= {"ngram_counts": [0, 100], "ngram_indexes": list(range(150)), "pool_int64s": [*range(100), *pool[:100]]}
    return Application(operator, [Operand((draw.size(3, 40), draw.size(50, 500)), dtype, "from 0 50")], more)


@draws(("f32", "i64"), "UnfoldTensor", domain=ONNXRUNTIME)
def unfold(draw: Draw, operator: str, dtype: str) -> Application:
    shape = (*draw.shape(1, cost=32), draw.size(33, 300))
    return Application(
        operator, [Operand(shape, dtype)], {"size": draw.pick(3, 5), "step": 2, "dim": -1}, 1, ONNXRUNTIME
    )


@draws(("i32", "i64", "f32"), "MurmurHash3", domain=ONNXRUNTIME)
def murmur(draw: Draw, operator: str, dtype: str) -> Application:
    return Application(operator, [Operand(draw.shape(2, cost=8), dtype)], {"positive": 0}, domain=ONNXRUNTIME)


@draws(("f32",), "NGramRepeatBlock", domain=ONNXRUNTIME)
def repeat_block(draw: Draw, operator: str, dtype: str) -> Application:
    rows, vocabulary = draw.size(1, 9), draw.size(1000, 32001)
    ids = Operand((rows, draw.size(20, 300)), "i64", "from 0 50")
    return Application(operator, [ids, Operand((rows, vocabulary), dtype)], {"ngram_size": 2}, domain=ONNXRUNTIME)


@draws(("string",), "Tokenizer", domain=ONNXRUNTIME)
def tokenizer(draw: Draw, operator: str, dtype: str) -> Application:
    more = {"mark": draw.pick(0, 1), "mincharnum": 1, "pad_value": "#", "separators": [" "]}
    return Application(operator, [Operand((draw.size(50, 1000),), dtype)], more, domain=ONNXRUNTIME)
