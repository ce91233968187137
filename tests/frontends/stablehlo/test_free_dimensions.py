"""Programs of StableHLO whose arguments have dimensions without a size."""

from __future__ import annotations

import numpy as np
import pytest

from glow_mlir import InferenceSession
from glow_mlir.errors import GlowError, OptionError
from glow_mlir.frontends.stablehlo.model import StablehloModel

MESSAGE = (
    "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. "
    "Using the following polymorphic shapes specifications: args[0]['x'].shape = (b, 4),args[1].shape = (2*b,). "
    "Obtained dimension variables: 'b' = {0}"
)
"""The message of the check that JAX writes at the front of a program."""

TEXT = """func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>, %y: tensor<?xf32>)
 -> (tensor<?x3xf32>, tensor<?x4xi32>) {
%b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%fits = stablehlo.compare GE, %b, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
CHECK
%z = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
%rows = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
%four = stablehlo.constant dense<4> : tensor<1xi32>
%three = stablehlo.constant dense<3> : tensor<1xi32>
%shape = stablehlo.concatenate %rows, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%half = stablehlo.constant dense<0.5> : tensor<f32>
%c = stablehlo.dynamic_broadcast_in_dim %half, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
%s = stablehlo.add %z, %c : tensor<?x3xf32>
%other = stablehlo.concatenate %rows, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
%i = stablehlo.dynamic_iota %other, dim = 0 : (tensor<2xi32>) -> tensor<?x4xi32>
return %s, %i : tensor<?x3xf32>, tensor<?x4xi32>
}"""


def model(has_names: bool = True) -> StablehloModel:
    """A program of a product, whose check names its dimensions."""
    check = f"""stablehlo.custom_call @shape_assertion(%fits, %b)
 {{has_side_effect = true, error_message = "{MESSAGE}"}} : (tensor<i1>, tensor<i32>) -> ()"""
    return StablehloModel(TEXT.replace("CHECK", check if has_names else "").encode())


def test_dimensions_have_the_names_of_jax_or_those_of_arguments() -> None:
    assert model().free_dimensions() == ["b", "2*b"]
    assert model(has_names=False).free_dimensions() == ["x.0", "y.0"]
    assert [item.shape for item in model().signature({}).inputs] == [("b", 4), (4, 3), ("2*b",)]


@pytest.mark.parametrize("dimensions", [None, {"b": (1, 16)}], ids=["sizes of calls", "bounds"])
def test_a_session_takes_several_sizes(dimensions: dict[str, tuple[int, int]] | None) -> None:
    session = InferenceSession(model(), dimensions=dimensions, threads=1)
    generator = np.random.default_rng(0)
    right = generator.standard_normal((4, 3)).astype(np.float32)
    for count in (1, 3, 7):
        left = generator.standard_normal((count, 4)).astype(np.float32)
        found = session.run(None, {"x": left, "w": right, "y": np.zeros(2 * count, np.float32)})
        np.testing.assert_allclose(found[0], left @ right + 0.5, rtol=1e-5)
        np.testing.assert_array_equal(found[1], np.repeat(np.arange(count, dtype=np.int32)[:, None], 4, 1))


def test_sizes_that_the_program_excludes_are_refused() -> None:
    with pytest.raises(GlowError, match="Input shapes do not match"):
        model().module({"b": 0})


def test_unknown_dimensions_are_refused() -> None:
    with pytest.raises(OptionError, match="no free dimension 'c'"):
        model().signature({"c": 3})
