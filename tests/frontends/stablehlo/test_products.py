"""Products of StableHLO at their borders: truth values, and results without elements."""

from __future__ import annotations

import numpy as np
from stablehlo_programs import check, signature_of


def test_a_product_of_truth_values_is_whether_one_product_is_true() -> None:
    generator = np.random.default_rng(0)
    left, right = generator.random((2, 3, 4)) < 0.4, generator.random((2, 4, 5)) < 0.4
    expected = (left.astype(int) @ right) > 0
    body = f"""%r = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1]
 : {signature_of([left, right], [expected])}"""
    check(body, [left, right], [expected])


def test_a_convolution_whose_windows_do_not_fit_has_no_elements() -> None:
    images, kernels, expected = (np.zeros(shape, np.float32) for shape in ((2, 3, 2), (4, 3, 5), (2, 4, 0)))
    body = f"""%r = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {{}}
 {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {signature_of([images, kernels], [expected])}"""
    check(body, [images, kernels], [expected])


def test_negative_padding_may_cut_off_padding_of_the_other_side() -> None:
    images, kernels = np.full((1, 1, 2), 2.0, np.float32), np.full((1, 1, 1), 3.0, np.float32)
    expected = np.zeros((1, 1, 2), np.float32)
    body = f"""%r = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
 window = {{pad = [[-3, 3]]}}
 {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {signature_of([images, kernels], [expected])}"""
    check(body, [images, kernels], [expected])
