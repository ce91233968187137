"""
ONNX's node tests on other processors: those that the CPU backend passes here pass there.

A sample that has every kernel runs with all tests, on each processor a part of it; all of them run by
`make node-tests-on-targets`.
"""

from __future__ import annotations

import pytest
from emulated_backend import emulating, suite_on_targets
from onnx_suite import expected_failures

pytestmark = pytest.mark.extra
"""They run on processors that are emulated."""

TARGETS = ("neon", "rvv-128", "cortex-m4", "cortex-m55", "wasm32")

SAMPLE = """
    attention_4d_padded_kv_bf16 compress_0 convtranspose lrn tile top_k col2im det_2d sce_sum edge_pad cumsum_1d
    scatternd gridsample gru_reverse qlinearconv attention_3d lstm_reverse tensorscatter hardmax_axis_0
    lppool_2d_pads rnn_seq_length maxpool_2d_ceil unique_length_1 upsample_nearest roialign_mode_max
    reversesequence_time linear_attention_fp16 gathernd_example_int32 deform_conv_with_mask_bias
    rms_normalization_2d_axis0 nonmaxsuppression_single_box tfidfvectorizer_tf_onlybigrams_skip5
    maxpool_with_argmax_2d_precomputed_pads sin tan asinh erf pow_types_int64_float32 mod_mixed_sign_int64 div_uint8
    cast_FLOAT_to_FLOAT16 averagepool_3d_default cast_DOUBLE_to_FLOAT instancenorm_example gelu_default_1
""".split()
"""Tests that together run every kernel that the suite runs at all, and functions and types that processors lack."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All tests on all targets where that is asked for, else the sample, each test on one target in turn."""
    if metafunc.config.getoption("--all-node-tests"):
        names = [name for name in suite_on_targets() if name.startswith("node/") and name not in expected_failures()]
        cases = [(target, name) for target in TARGETS for name in names]
    else:
        cases = [(TARGETS[number % len(TARGETS)], f"node/test_{name}") for number, name in enumerate(SAMPLE)]
    metafunc.parametrize(("target", "name"), cases)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_node(monkeypatch: pytest.MonkeyPatch, target: str, name: str) -> None:
    emulating(monkeypatch, target)
    suite_on_targets()[name](None)
