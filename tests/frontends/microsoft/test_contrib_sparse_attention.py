"""onnxruntime's SparseAttention gives what it computes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnxruntime
import pytest
from contrib_cases import BACKENDS, Contrib, assert_near, normal

from glow_mlir.errors import ModelError

N, K, D, BLOCK, ROOM = 4, 2, 16, 16, 64
ROWS = np.array([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], np.int32)
COLUMNS = np.array([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], np.int32)
"""Two layouts of four blocks, as onnxruntime's documentation has them."""

HEADS = {"num_heads": N, "kv_num_heads": K, "sparse_block_size": BLOCK}
TABLES = [normal(ROOM, D // 2), normal(ROOM, D // 2)]


def case_of(length: int, ends: list[int], rotary: bool, packed: bool) -> Contrib:
    """A call on sequences with those ends."""
    batch = len(ends)
    parts = [normal(batch, length, heads * D) for heads in (N, K, K)]
    given = [np.concatenate(parts, 2), None, None] if packed else parts
    cache = [normal(batch, K, ROOM, D), normal(batch, K, ROOM, D)]
    operands = [*given, *cache, ROWS, COLUMNS, np.array(max(ends), np.int32), np.array(ends, np.int32)]
    attributes = {**HEADS, "do_rotary": int(rotary)}
    return Contrib("SparseAttention", [*operands, *TABLES * rotary], attributes, (0, 1, 2), constant=(5, 6, 7))


def by_onnxruntime(case: Contrib) -> list[np.ndarray]:
    """What onnxruntime computes, which takes and gives keys and values in the same buffers only."""
    runtime = cast(Any, onnxruntime)
    session = runtime.InferenceSession(case.model().SerializeToString(), providers=["CPUExecutionProvider"])
    binding, shared = session.io_binding(), {"x3": "y1", "x4": "y2"}
    for name, array in case.inputs().items():
        value = runtime.OrtValue.ortvalue_from_numpy(array.copy())
        binding.bind_ortvalue_input(name, value)
        if name in shared:
            binding.bind_ortvalue_output(shared[name], value)
    binding.bind_output("y0")
    session.run_with_iobinding(binding)
    found = dict(zip(("y1", "y2", "y0"), binding.copy_outputs_to_cpu(), strict=True))
    return [found[name] for name in ("y0", "y1", "y2")]


@pytest.mark.parametrize(
    ("length", "ends"), [(1, [40, 40]), (1, [23, 23]), (40, [40, 40])], ids=["late", "early", "first"]
)
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_calls(length: int, ends: list[int], rotary: bool, packed: bool) -> None:
    case = case_of(length, ends, rotary, packed)
    wanted = by_onnxruntime(case)
    for backend in BACKENDS:
        found = case.by_us(backend)
        assert_near(found[:1], wanted[:1], 2e-5)
        for row, end in enumerate(ends):
            assert_near([t[row, :, :end] for t in found[1:]], [t[row, :, :end] for t in wanted[1:]], 2e-5)


def test_sequences_of_other_lengths() -> None:
    """Each is as it is alone: of several, onnxruntime computes only the longest."""
    both = case_of(1, [40, 23], True, False)
    for backend in BACKENDS:
        found = both.by_us(backend)
        for row, end in enumerate((40, 23)):
            operands = [array[row : row + 1] if place < 5 else array for place, array in enumerate(both.operands)]
            operands[7:9] = np.array(end, np.int32), np.array([end], np.int32)
            wanted = by_onnxruntime(Contrib(both.kind, operands, both.attributes, (0, 1, 2), constant=(5, 6, 7)))
            assert_near([found[0][row]], [wanted[0][0]], 2e-5)


def test_blocks_that_are_none_are_refused_in_one_line() -> None:
    case = case_of(1, [40], False, False)
    operands = list(case.operands)
    operands[6] = COLUMNS + 1
    wrong = Contrib(case.kind, operands, case.attributes, constant=(5, 6, 7))
    assert "columns 5 to 8 of a row are invalid" in wrong.refusal(ModelError)
