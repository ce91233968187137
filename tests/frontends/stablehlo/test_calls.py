"""Calls of other code in StableHLO, tokens, and operations between devices."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_programs import check, type_of

from glow_mlir.errors import UnsupportedError

VALUES = np.arange(3, dtype=np.float32)
TYPE = type_of(VALUES)


@pytest.mark.parametrize("annotation", ["Sharding", "SPMDFullToShardShape", "annotate_device_placement"])
def test_annotations_give_their_operands(annotation: str) -> None:
    check(f"%r = stablehlo.custom_call @{annotation}(%0) : ({TYPE}) -> {TYPE}", [VALUES], [VALUES])


def test_another_call_is_refused_by_its_target() -> None:
    with pytest.raises(UnsupportedError, match="a call of 'my_kernel' is not supported"):
        check(f"%r = stablehlo.custom_call @my_kernel(%0) : ({TYPE}) -> {TYPE}", [VALUES], [VALUES])


BETWEEN_DEVICES = {
    "all_gather": "all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>",
    "collective_permute": "source_target_pairs = dense<0> : tensor<1x2xi64>",
    "cross-replica-sum": "replica_groups = dense<0> : tensor<1x1xi64>",
}


@pytest.mark.parametrize("name", BETWEEN_DEVICES)
def test_operations_between_devices_are_refused_by_name(name: str) -> None:
    body = f'%r = "stablehlo.{name}"(%0) <{{{BETWEEN_DEVICES[name]}}}> : ({TYPE}) -> {TYPE}'
    with pytest.raises(UnsupportedError, match=f"{name}: moves values between devices"):
        check(body, [VALUES], [VALUES])


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_there_is_one_device(name: str) -> None:
    number = np.array(0, np.uint32)
    check(f'%r = "stablehlo.{name}"() : () -> {type_of(number)}', [VALUES], [number])


def test_tokens_are_passed_on() -> None:
    body = f"""%t = stablehlo.create_token : !stablehlo.token
%u = stablehlo.after_all %t, %t : !stablehlo.token
%r = stablehlo.negate %0 : {TYPE}"""
    check(body, [VALUES], [-VALUES])
