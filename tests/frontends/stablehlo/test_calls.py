"""Calls of other code in StableHLO, tokens, and operations between devices."""

from __future__ import annotations

import numpy as np
import pytest
from stablehlo_programs import check, type_of

from glow_mlir.errors import GlowError, UnsupportedError
from glow_mlir.frontends.stablehlo.files import read_stablehlo
from glow_mlir.frontends.stablehlo.importer import import_stablehlo

VALUES = np.arange(3, dtype=np.float32)
TYPE = type_of(VALUES)


@pytest.mark.parametrize("callee", ["Sharding", "SPMDFullToShardShape", "annotate_device_placement"])
def test_annotations_give_their_operands(callee: str) -> None:
    check(f"%r = stablehlo.custom_call @{callee}(%0) : ({TYPE}) -> {TYPE}", [VALUES], [VALUES])


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


def test_tuples_are_taken_apart() -> None:
    inner = f"tuple<{TYPE}, tensor<i32>>"
    body = f"""%n = stablehlo.constant dense<3> : tensor<i32>
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%t = stablehlo.tuple %0, %n : {inner}
%u = stablehlo.tuple %t, %0 : tuple<{inner}, {TYPE}>
%b = stablehlo.optimization_barrier %u : tuple<{inner}, {TYPE}>
%s = stablehlo.get_tuple_element %b[0] : (tuple<{inner}, {TYPE}>) -> {inner}
%w = "stablehlo.while"(%s) ({{
^bb0(%a: {inner}):
  %c = stablehlo.get_tuple_element %a[1] : ({inner}) -> tensor<i32>
  %more = stablehlo.compare GT, %c, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %more : tensor<i1>
}}, {{
^bb0(%a: {inner}):
  %x = stablehlo.get_tuple_element %a[0] : ({inner}) -> {TYPE}
  %c = stablehlo.get_tuple_element %a[1] : ({inner}) -> tensor<i32>
  %y = stablehlo.add %x, %x : {TYPE}
  %d = stablehlo.subtract %c, %one : tensor<i32>
  %next = stablehlo.tuple %y, %d : {inner}
  stablehlo.return %next : {inner}
}}) : ({inner}) -> {inner}
%r = stablehlo.get_tuple_element %w[0] : ({inner}) -> {TYPE}"""
    check(body, [VALUES], [8 * VALUES])


def test_a_tuple_as_a_result_of_the_program_is_refused() -> None:
    text = f"""func.func @main(%0: {TYPE}) -> tuple<{TYPE}> {{
%r = stablehlo.tuple %0 : tuple<{TYPE}>
func.return %r : tuple<{TYPE}>
}}"""
    with pytest.raises(UnsupportedError, match=r"'result0' of type tuple<.* is not supported"):
        import_stablehlo(read_stablehlo(text.encode()))


def test_an_operation_that_takes_no_tuples_is_refused() -> None:
    body = f"""%t = stablehlo.tuple %0 : tuple<{TYPE}>
%r = "stablehlo.sort"(%t) ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}}) : (tuple<{TYPE}>) -> {TYPE}"""
    with pytest.raises(GlowError):
        check(body, [VALUES], [VALUES])
