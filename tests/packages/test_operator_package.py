"""Operators of another distribution work as built-in ones do, and what is wrong with one is told in a line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from checkout import ROOT
from onnx import TensorProto, helper
from package_sites import OPERATOR_PACKAGE, install, install_example, output, run
from tflite_files import OperatorCase, TensorCase, tflite_model

EPSILON = 1e-3

OPTIONS = b"epsilon\0\1\t\0\0\3\0\0\0\1\0\0\0\1\0\0\0\0\0\0\x3e\x0e\5\x26\1"
"""The map of `epsilon` to 0.125, a flexbuffer."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the example is installed, as its own pyproject.toml says."""
    folder = tmp_path_factory.mktemp("site")
    install_example(folder, OPERATOR_PACKAGE)
    return folder


def model_of(*domains: str) -> onnx.ModelProto:
    """A model with the three operators that imports the operator sets of those domains."""
    nodes = [
        helper.make_node("Logit", ["x"], ["logit"], "logit", domain="glow.extra", epsilon=EPSILON),
        helper.make_node("BiasGelu", ["logit", "bias"], ["gelu"], "gelu", domain="glow.fused"),
        helper.make_node("PairwiseDotProduct", ["gelu"], ["pairs"], "pairs", domain="glow.extra"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 5, 37)),
        helper.make_tensor_value_info("bias", TensorProto.FLOAT, (37,)),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("logit", "gelu", "pairs")]
    opsets = [helper.make_opsetid(domain, 1 if domain else 20) for domain in domains]
    return helper.make_model(helper.make_graph(nodes, "extra", inputs, outputs), opset_imports=opsets, ir_version=10)


@pytest.fixture(scope="module")
def model(site: Path) -> Path:
    path = site / "extra.onnx"
    onnx.save(model_of("", "glow.extra", "glow.fused"), path)
    return path


def expected(x: np.ndarray, bias: np.ndarray) -> dict[str, np.ndarray]:
    """What the three operators compute, in f64."""
    clamped = np.clip(x.astype(np.float64), EPSILON, 1 - EPSILON)
    logit = np.log(clamped / (1 - clamped))
    value = logit + bias
    gelu = value * 0.5 * (1 + np.vectorize(math.erf)(value / math.sqrt(2)))
    pairs = [(gelu[:, i] * gelu[:, j]).sum(-1) for i in range(5) for j in range(i + 1, 5)]
    return {"logit": logit, "gelu": gelu, "pairs": np.stack(pairs, 1)}


SESSION = """
import sys
import numpy as np
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
backend, model, inputs, results = sys.argv[1:]
session = InferenceSession(model, backend=backend)
arrays = session.run(None, dict(np.load(inputs)))
np.savez(results, **{output.name: array for output, array in zip(session.get_outputs(), arrays)})
"""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_operators_compute_what_they_say(site: Path, model: Path, tmp_path: Path, backend: str) -> None:
    rng = np.random.default_rng(0)
    x, bias = rng.random((3, 5, 37), np.float32), rng.standard_normal(37, np.float32)
    np.savez(tmp_path / "inputs.npz", x=x, bias=bias)
    output(site, "-c", SESSION, backend, model, tmp_path / "inputs.npz", tmp_path / "results.npz")
    results = np.load(tmp_path / "results.npz")
    for name, wanted in expected(x, bias).items():
        assert results[name].dtype == np.float32
        np.testing.assert_allclose(results[name], wanted, rtol=2e-5, atol=2e-5)


def test_text_with_the_operators_round_trips(site: Path, model: Path) -> None:
    file = model.with_suffix(".mlir")
    output(site, "-m", "glow_mlir.tools.glow_import", model, "-o", file)
    text = output(site, "-m", "glow_mlir.tools.glow_opt", file)
    assert "glow_high.logit %x {epsilon = 0.001} : tensor<3x5x37xf32>" in text
    assert "glow_high.bias_gelu %logit, %bias : tensor<3x5x37xf32>" in text
    assert "glow_high.pairwise_dot_product %gelu : tensor<3x10xf32>" in text
    generic = model.with_suffix(".generic.mlir")
    generic.write_text(output(site, "-m", "glow_mlir.tools.glow_opt", file, "--print-op-generic"))
    assert '"glow_high.logit"' in generic.read_text()
    assert output(site, "-m", "glow_mlir.tools.glow_opt", generic) == text


def test_machine_code_is_chosen_as_for_built_in_operators(site: Path, model: Path) -> None:
    tool = ("-m", "glow_mlir.tools.glow_import", model, "-o", "-", "--stage")
    lowered = output(site, *tool, "lowered")
    assert "glow_high.logit" in lowered
    assert "glow_high.gelu" in lowered
    assert "bias_gelu" not in lowered
    selected = output(site, *tool, "selected")
    assert 'glow_low.pairwise_dot_product @out %pairs, @in %gelu {kernel = "pairwise-dot-product"}' in selected


def test_custom_operators_of_tensorflow_lite(site: Path, tmp_path: Path) -> None:
    tensors, operators = [TensorCase((7,))] * 2, [OperatorCase("CUSTOM Logit", (0,), (1,), custom=OPTIONS)]
    path = tmp_path / "custom.tflite"
    path.write_bytes(tflite_model(tensors, operators, (0,), (1,)))
    x = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], np.float32)
    np.savez(tmp_path / "inputs.npz", t0=x)
    output(site, "-c", SESSION, "cpu", path, tmp_path / "inputs.npz", tmp_path / "results.npz")
    clamped = np.clip(x.astype(np.float64), 0.125, 0.875)
    found = np.load(tmp_path / "results.npz")["t1"]
    np.testing.assert_allclose(found, np.log(clamped / (1 - clamped)), rtol=1e-5, atol=1e-5)


def test_operators_are_listed(site: Path, model: Path) -> None:
    file = site / "listed.mlir"
    output(site, "-m", "glow_mlir.tools.glow_import", model, "-o", file)
    page = output(site, ROOT / "docs" / "generate_operators.py", "--print", file)
    assert "### glow.fused" in page
    assert "| BiasGelu | 1 | importer |" in page
    assert "| Logit | 1 | importer |" in page
    assert "| `logit` | stacked |" in page
    assert "| `bias_gelu` | lowered |" in page
    assert "| `pairwise_dot_product` | `pairwise-dot-product` |" in page


def test_version_of_a_package_decides_whether_a_compiled_model_is_still_valid(site: Path) -> None:
    code = "from glow_mlir.api.model_compiler import compiler_versions; print(compiler_versions())"
    assert "glow-extra-operators 0.1.0" in output(site, "-c", code)


def failure(site: Path, model: Path) -> str:
    """The one line by which the import of a model fails."""
    finished = run(site, "-m", "glow_mlir.tools.glow_import", model, "-o", "-")
    assert finished.returncode == 1
    assert finished.stdout == ""
    (line,) = finished.stderr.splitlines()
    return line


def test_operator_set_that_the_model_does_not_import_is_assumed(site: Path, tmp_path: Path) -> None:
    onnx.save(model_of("", "glow.extra"), tmp_path / "model.onnx")
    finished = run(site, "-m", "glow_mlir.tools.glow_import", tmp_path / "model.onnx", "-o", "-")
    assert finished.returncode == 0
    (line,) = finished.stderr.splitlines()
    assert "node 'gelu': BiasGelu: the model imports no version of opset 'glow.fused'; 1 is assumed" in line


def test_operators_of_a_package_that_is_missing_are_not_supported(tmp_path: Path, model: Path) -> None:
    line = failure(tmp_path, model)
    assert "glow.extra.Logit ('logit')" in line
    assert "docs/add-an-operator.md" in line


CLASS = """
from xdsl.irdl import irdl_op_definition
from glow_mlir.dialects.glow_high.elementwise import Unary
@irdl_op_definition
class MineOp(Unary):
    name = "{name}"
    def scalar(self, b, x):
        return x
"""
IMPORTER = """
from glow_mlir.ir.registry import onnx_operator
@onnx_operator("Relu")
def relu(node):
    return node.input()
"""
PACKAGE = """
from glow_mlir.dialects.packages import OperatorPackage
PACKAGE = OperatorPackage({part}=("broken_part",))
"""
BROKEN: dict[str, tuple[str, str, str]] = {
    "class": (
        PACKAGE.format(part="operators"),
        CLASS.format(name="glow_high.relu"),
        "operator 'glow_high.relu' is defined twice, in glow_mlir.dialects.glow_high.activations and in broken_part",
    ),
    "name": (
        PACKAGE.format(part="operators"),
        CLASS.format(name="mine.relu"),
        "operator 'mine.relu' of broken_part is not named 'glow_high.…'",
    ),
    "importer": (
        PACKAGE.format(part="importers"),
        IMPORTER,
        "the importers have two entries for Relu from opset 1 on, "
        "in glow_mlir.frontends.onnx.operators.plain_operators and in "
        "broken_part",
    ),
    "part": (
        PACKAGE.format(part="operators"),
        "import no_such_module",
        "operator package 'mine' (broken 1.0) cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "entry": ("PACKAGE = 3", "", "operator package 'mine' (broken 1.0): broken:PACKAGE is no OperatorPackage"),
}
"""What is wrong → the package, its part, the error."""


@pytest.mark.parametrize("case", BROKEN)
def test_broken_package_is_told_in_one_line(tmp_path: Path, case: str) -> None:
    package, part, message = BROKEN[case]
    install(tmp_path, "broken", "1.0", "mine = broken:PACKAGE")
    (tmp_path / "broken.py").write_text(package)
    (tmp_path / "broken_part.py").write_text(part)
    node = helper.make_node("Relu", ["x"], ["y"])
    input_ = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))
    graph = helper.make_graph([node], "relu", [input_], [onnx.ValueInfoProto(name="y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), tmp_path / "relu.onnx")
    assert message in failure(tmp_path, tmp_path / "relu.onnx")
