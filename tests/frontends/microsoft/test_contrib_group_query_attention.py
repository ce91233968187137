"""onnxruntime's GroupQueryAttention gives what it computes: lengths that data says, caches, windows, caps, sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from contrib_cases import BACKENDS, ONNXRUNTIME, Contrib, assert_near, normal
from onnx import TensorProto, helper, numpy_helper
from other_runtimes import by_onnxruntime

from glow_mlir import InferenceSession
from glow_mlir.errors import ModelError, UnsupportedError

N, K, D = 4, 2, 16
HEADS = {"num_heads": N, "kv_num_heads": K}
LAST, TOTAL = 5, 6
"""Positions of the operands that say lengths."""

TABLES = [normal(20, D // 2), normal(20, D // 2)]


def operands(length: int, ends: Sequence[int], past: int, packed: bool = False, depth: int = D) -> list[Any]:
    """Those of a call with so many new keys, on sequences with these ends; `past` is the room for earlier keys."""
    batch = len(ends)
    parts = [normal(batch, length, heads * depth) for heads in (N, K, K)]
    given = [np.concatenate(parts, 2), None, None] if packed else parts
    cache = [normal(batch, K, past, depth), normal(batch, K, past, depth)] if past else [None, None]
    return [*given, *cache, np.array(ends, np.int32) - 1, np.array(max(ends), np.int32)]


def check(case: Contrib, valid: Sequence[int] | None = None) -> None:
    """Compare what is specified: results of rows that are no padding, and keys up to the end of each sequence."""
    wanted = case.expected()
    last = case.operands[LAST]
    assert last is not None
    for backend in BACKENDS:
        found = case.by_us(backend)
        for row, end in enumerate(last + 1):
            rows = wanted[0].shape[1] if valid is None else valid[row]
            parts = [(slice(0, rows),), *[(slice(None), slice(0, end))] * (len(wanted) - 1)]
            ours, theirs = ([array[row][part] for array, part in zip(side, parts)] for side in (found, wanted))
            assert_near(ours, theirs, case.tolerance)
        assert [array.shape for array in found] == [array.shape for array in wanted]


def case_of(given: Sequence[Any], attributes: Mapping[str, Any], **more: Any) -> Contrib:
    """A case with all results; operands that say shapes are constants."""
    return Contrib("GroupQueryAttention", given, {**HEADS, **attributes}, (0, 1, 2), constant=(TOTAL,), **more)


FORMS: Sequence[Mapping[str, Any]] = (
    {},
    {"local_window_size": 2},
    {"softcap": 1.5},
    {"smooth_softmax": 1},
    {"scale": 0.7},
    {"do_rotary": 1},
    {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 3, "softcap": 2.0},
)

CALLS = {
    "step that grows": (1, (6, 4), 5),
    "step in a buffer": (1, (6, 4), 9),
    "first": (4, (4, 2), 0),
    "first in a buffer": (4, (4, 3), 7),
    "chunk": (3, (8,), 5),
}
"""New keys, ends of sequences, and the room of the past."""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("attributes", FORMS, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_calls(call: str, attributes: Mapping[str, Any], packed: bool) -> None:
    length, ends, past = CALLS[call]
    given = operands(length, ends, past, packed)
    if attributes.get("do_rotary"):
        given += TABLES
    check(case_of(given, attributes), [min(length, end) for end in ends])


@pytest.mark.parametrize("call", ["step that grows", "first", "chunk"])
def test_positions_addends_and_sinks(call: str) -> None:
    length, ends, past = CALLS[call]
    batch, valid = len(ends), [min(length, end) for end in ends]
    places = np.arange(length) + np.arange(batch)[:, None] + 2
    check(case_of([*operands(length, ends, past), *TABLES, places], {"do_rotary": 1}), valid)
    for shape in ((batch, N), (1, 1)):
        addend = normal(*shape, length, max(ends))
        check(case_of([*operands(length, ends, past), None, None, None, addend], {"softcap": 1.0}), valid)
    check(case_of([*operands(length, ends, past), *[None] * 4, normal(N)], {}), valid)


def test_a_part_of_each_head_is_turned_and_all_keys_are_seen() -> None:
    check(case_of([*operands(1, (6, 4), 5, depth=2 * D), *TABLES], {"do_rotary": 1}))
    check(case_of(operands(4, (4, 4), 0), {"causal": 0}))
    check(case_of(operands(1, (6, 4), 5), {"causal": 0}))


def test_new_keys_of_which_some_are_padding() -> None:
    given = [*operands(3, (6, 5), 9), *TABLES, *[None] * 7, None, np.array([3, 1], np.int32)]
    check(case_of([*given[:16], given[-1]], {"do_rotary": 1}), [3, 1])


@pytest.mark.parametrize("room", [4, 6])
@pytest.mark.parametrize("steps", [(1,) * 9, (6, 1, 1, 1, 2, 1), (3, 3, 3)], ids=str)
def test_tables_of_the_last_keys_only(steps: Sequence[int], room: int) -> None:
    """Of which some go where there is no room for more; a call may bring more than there is room for."""
    attributes = {"do_rotary": 1, "local_window_size": 4, "sliding_window_cache": 1}
    past, total = [np.zeros((1, K, room, D), np.float32)] * 2, 0
    for length in steps:
        total += length
        given = [*operands(length, (total,), 0, packed=True)]
        given[3:5] = past
        case = case_of([*given, *TABLES], attributes)
        wanted = case.expected()
        step = room - 4 + 1
        held = total - step * max(0, -(-(total - room) // step))
        for backend in BACKENDS:
            found = case.by_us(backend)
            assert_near(found[:1], wanted[:1], 2e-5)
            assert_near([table[:, :, :held] for table in found[1:]], [table[:, :, :held] for table in wanted[1:]], 2e-5)
        past = wanted[1:]


def test_rows_behind_the_last_key_may_hold_anything() -> None:
    for ends, past in (((6, 4), 5), ((6, 4), 9), ((6,), 9)):
        given = operands(1, ends, past)
        for table in given[3:5]:
            for row, end in enumerate(ends):
                table[row, :, end - 1 :] = np.nan
        check(case_of(given, {}))


def test_halves() -> None:
    given = [array.astype(np.float16) if array.dtype == np.float32 else array for array in operands(1, (6, 4), 5)]
    check(case_of(given, {}))


def test_queries_and_keys_are_normalized() -> None:
    """As other operators do it in front, where onnxruntime has it: on GPUs."""
    given, scales = operands(1, (6, 4), 5), [normal(D), normal(D)]
    apart = list(given)
    for place, heads in ((0, N), (1, K)):
        x = given[place].reshape(2, 1, heads, D).astype(np.float64)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scales[place]
        apart[place] = x.reshape(given[place].shape).astype(np.float32)
    wanted = case_of(apart, {}).expected()
    case = case_of([*given, *[None] * 7, *scales], {})
    for backend in BACKENDS:
        assert_near(case.by_us(backend)[:1], wanted[:1], 1e-5)


def decoder() -> onnx.ModelProto:
    """One layer as onnxruntime-genai writes it: lengths follow from a mask, whose size is that of all keys."""
    width = N * D
    nodes = [
        helper.make_node("ReduceSum", ["mask", "axis"], ["sums"], keepdims=0),
        helper.make_node("Sub", ["sums", "one"], ["last64"]),
        helper.make_node("Cast", ["last64"], ["last"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["total64"], axis=0),
        helper.make_node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        helper.make_node("MatMul", ["x", "w"], ["qkv"]),
        helper.make_node(
            "GroupQueryAttention",
            ["qkv", "", "", "past.k", "past.v", "last", "total", "cos", "sin"],
            ["y", "now.k", "now.v"],
            domain=ONNXRUNTIME,
            do_rotary=1,
            **HEADS,
        ),
    ]
    cache = ["batch", K, "past", D]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", width]),
        helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "total"]),
        *(helper.make_tensor_value_info(f"past.{name}", TensorProto.FLOAT, cache) for name in "kv"),
    ]
    arrays = {
        "axis": np.array([1]),
        "one": np.array(1),
        "w": normal(width, (N + 2 * K) * D) / 4,
        "cos": np.cos(np.outer(np.arange(32), 0.5 ** np.arange(D // 2))).astype(np.float32),
        "sin": np.sin(np.outer(np.arange(32), 0.5 ** np.arange(D // 2))).astype(np.float32),
    }
    outputs = [onnx.ValueInfoProto(name=name) for name in ("y", "now.k", "now.v")]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ONNXRUNTIME, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


SIZES = {"batch": 1, "length": (1, 8), "past": (0, 16), "total": (1, 24)}


@pytest.mark.parametrize("dimensions", [None, SIZES], ids=["by call", "bounds"])
def test_a_prompt_and_steps_after_it(dimensions: Any) -> None:
    """In caches that grow: what a call gives is the past of the next."""
    model = decoder()
    session = InferenceSession(model, cache=False, dimensions=dimensions)
    past = [np.zeros((1, K, 0, D), np.float32)] * 2
    total = 0
    for length in (5, 1, 1, 2):
        total += length
        inputs = {"x": normal(1, length, N * D), "mask": np.ones((1, total), np.int64)}
        inputs |= {"past.k": past[0], "past.v": past[1]}
        wanted = list(by_onnxruntime(model, inputs).values())
        found = session.run(None, inputs)
        assert_near(found, wanted, 2e-5)
        past = found[1:]


def test_steps_branches_and_rewound_steps_of_one_session() -> None:
    """Past and total are bounded for themselves; what a call gave stays as it was, whatever is made of it."""
    model = decoder()
    session = InferenceSession(model, threads=1, dimensions=SIZES)

    def step(past: Sequence[np.ndarray], length: int, total: int) -> list[np.ndarray]:
        inputs = {"x": normal(1, length, N * D), "mask": np.ones((1, total), np.int64)}
        inputs |= {"past.k": past[0], "past.v": past[1]}
        before = [array.copy() for array in past]
        found = session.run(None, inputs)
        wanted = list(by_onnxruntime(model, inputs).values())
        assert_near(found[:1], wanted[:1], 2e-5)
        for array, copy, ours, theirs in zip(past, before, found[1:], wanted[1:], strict=True):
            np.testing.assert_array_equal(array, copy)
            assert ours.shape == theirs.shape
            assert_near([ours[:, :, :total]], [theirs[:, :, :total]], 2e-5)
        return found[1:]

    prompt = step([np.zeros((1, K, 0, D), np.float32)] * 2, 5, 5)
    first = step(prompt, 1, 6)
    other = step(prompt, 2, 7)  # Another continuation of the prompt.
    step(other, 1, 8)
    rewound = step(other, 1, 6)  # Upon keys that the caller still has.
    assert [array.shape[2] for array in rewound] == [7, 7]
    step(first, 1, 7)


def test_steps_in_a_buffer_of_fixed_size() -> None:
    """Whose sequences have other lengths, with a mask as long as the keys so far, or as the buffer."""
    model = decoder()
    past = [normal(2, K, 16, D) for _ in range(2)]
    for total in (6, 16):
        mask = (np.arange(total) < np.array([[6], [4]])).astype(np.int64)
        inputs = {"x": normal(2, 1, N * D), "mask": mask, "past.k": past[0], "past.v": past[1]}
        wanted = list(by_onnxruntime(model, inputs).values())
        for sizes in (None, {**SIZES, "batch": 2}):
            found = InferenceSession(model, cache=False, dimensions=sizes).run(None, inputs)
            assert_near(found[:1], wanted[:1], 2e-5)
            for ours, theirs in zip(found[1:], wanted[1:], strict=True):
                assert ours.shape == theirs.shape
                for row, end in enumerate((6, 4)):
                    assert_near([ours[row, :, :end]], [theirs[row, :, :end]], 2e-5)


@pytest.mark.parametrize(("past", "total", "end"), [(16, 16, 6), (16, 10, 6), (7, 8, 5)])
def test_a_single_sequence_may_be_shorter_than_its_mask(past: int, total: int, end: int) -> None:
    """Its new keys follow its own, wherever the mask ends; what the caller gave stays as it was."""
    model = decoder()
    tables = [normal(1, K, past, D) for _ in range(2)]
    given = [table.copy() for table in tables]
    mask = (np.arange(total) < end).astype(np.int64)[np.newaxis]
    inputs = {"x": normal(1, 1, N * D), "mask": mask, "past.k": tables[0], "past.v": tables[1]}
    wanted = list(by_onnxruntime(model, inputs).values())
    for sizes in (None, SIZES):
        found = InferenceSession(model, cache=False, dimensions=sizes).run(None, inputs)
        assert_near(found[:1], wanted[:1], 2e-5)
        for ours, theirs, table, copy in zip(found[1:], wanted[1:], tables, given, strict=True):
            assert_near([ours[:, :, :end]], [theirs[:, :, :end]], 2e-5)
            np.testing.assert_array_equal(table, copy)


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    given = operands(1, (6, 4), 5)
    for attributes, kind, said in (
        ({"kv_num_heads": 3}, ModelError, "4 heads cannot share 3 of keys"),
        ({"num_heads": 6}, ModelError, "elements are not those of heads [6, 2, 2]"),
        ({"sliding_window_cache": 1, "local_window_size": 6}, ModelError, "a window of 6 does not fit 5 keys"),
        ({"qk_output": 1}, UnsupportedError, "attention weights as a result"),
        ({"k_quant_type": "PER_TENSOR"}, UnsupportedError, "quantized earlier keys and values are not supported"),
    ):
        assert said in case_of(given, attributes).refusal(kind)
    assert "only one of the operands 1 and 2" in case_of([*given[:2], None, *given[3:]], {}).refusal(ModelError)
