"""onnxruntime's DecoderMaskedMultiHeadAttention gives what it computes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnxruntime
import pytest
from contrib_cases import BACKENDS, Contrib, assert_near, below, normal
from onnx_models import refusal

from glow_mlir.errors import ModelError, UnsupportedError

B, N, D, ROOM, PAST = 4, 2, 8, 12, 5
HIDDEN = N * D
HEADS = {"num_heads": N}
BIAS = normal(3 * HIDDEN)
MASK = np.array([[1] * 6, [1, 1, 1, 0, 0, 1], [1] * 6, [0, 1, 1, 1, 1, 1]], np.int32)


def token(width: int = HIDDEN) -> np.ndarray:
    """What belongs to one token of each sequence."""
    return normal(B, 1, width)


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "mask"])
@pytest.mark.parametrize("bias", [None, BIAS], ids=["plain", "bias"])
def test_a_past_that_grows(mask: np.ndarray | None, bias: np.ndarray | None) -> None:
    cache = [normal(B, N, PAST, D), normal(B, N, PAST, D)]
    apart: list[Any] = [token(), token(), token(), mask, None, *cache, None, None, None, bias]
    wanted = Contrib("MultiHeadAttention", [*apart[:3], bias, mask, None, *cache], HEADS, (0, 1, 2)).expected()
    Contrib("DecoderMaskedMultiHeadAttention", apart, HEADS, (0, 1, 2)).check(wanted)
    packed = [np.concatenate(apart[:3], 2), None, None, *apart[3:]]
    Contrib("DecoderMaskedMultiHeadAttention", packed, HEADS, (0, 1, 2)).check(wanted)


def by_onnxruntime(case: Contrib) -> list[np.ndarray]:
    """What onnxruntime computes in one buffer for past and present."""
    runtime = cast(Any, onnxruntime)
    session = runtime.InferenceSession(case.model().SerializeToString(), providers=["CPUExecutionProvider"])
    binding, shared = session.io_binding(), {"x5": "y1", "x6": "y2"}
    for name, array in case.inputs().items():
        value = runtime.OrtValue.ortvalue_from_numpy(array.copy())
        binding.bind_ortvalue_input(name, value)
        if name in shared:
            binding.bind_ortvalue_output(shared[name], value)
    binding.bind_output("y0")
    session.run_with_iobinding(binding)
    found = dict(zip(("y1", "y2", "y0"), binding.copy_outputs_to_cpu(), strict=True))
    return [found[name] for name in ("y0", "y1", "y2")]


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "mask"])
@pytest.mark.parametrize("beams", [False, True])
@pytest.mark.parametrize("bias", [None, BIAS], ids=["plain", "bias"])
def test_a_buffer_that_beams_share(mask: np.ndarray | None, beams: bool, bias: np.ndarray | None) -> None:
    """Keys of the past are those of other beams of the same batch."""
    cache = [normal(B, N, ROOM, D), normal(B, N, ROOM, D)]
    for table in cache:
        table[:, :, PAST:] = np.nan
    width = np.array([2], np.int32) if beams else None
    source = below(2, B // 2, 2, ROOM, dtype="int32") if beams else None
    operands = [token(), token(), token(), mask, None, *cache, np.array([PAST], np.int32), width, source, bias]
    case = Contrib("DecoderMaskedMultiHeadAttention", operands, {**HEADS, "past_present_share_buffer": 1}, (0, 1, 2))
    wanted = by_onnxruntime(case)
    for backend in BACKENDS:
        found = case.by_us(backend)
        assert_near(found[:1], wanted[:1], 2e-5)
        assert_near([t[:, :, : PAST + 1] for t in found[1:]], [t[:, :, : PAST + 1] for t in wanted[1:]], 2e-5)


def test_keys_of_another_sequence() -> None:
    kept = [normal(B, N, 6, D), normal(B, N, 6, D)]
    Contrib("DecoderMaskedMultiHeadAttention", [token(), *kept, MASK], {**HEADS, "scale": 0.4}).check()


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    for operands, results, error, said in (
        ([token(20)], (0,), ModelError, "2 heads do not fit [6"),
        ([token(), token(), normal(B, N, 6, D)], (0,), ModelError, "operand 2 of DecoderMasked"),
        ([token(), token(), token()], (0, 3), UnsupportedError, "attention weights as a result"),
    ):
        attributes = {"num_heads": 4} if "[6" in said else HEADS
        kind = "DecoderMaskedMultiHeadAttention"
        assert said.replace("2 heads", "4 heads") in Contrib(kind, operands, attributes, results).refusal(error)


def test_batches_that_do_not_fit_into_memory_are_refused() -> None:
    """Before anything as long as them is made."""
    cache = [normal(B, N, ROOM, D), normal(B, N, ROOM, D)]
    operands = [token(), token(), token(), None, None, *cache, np.array([PAST], np.int32)]
    kind, attributes = "DecoderMaskedMultiHeadAttention", {**HEADS, "past_present_share_buffer": 1}
    model = Contrib(kind, operands, attributes, (0, 1, 2), constant=(7,)).model()
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = 1 << 31
    assert "2147483648 positions are more than 268435456" in refusal(model, UnsupportedError)
