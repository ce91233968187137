"""Inputs and outputs among the activations: the same results, in less memory, however buffers live."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from breadth import examples
from c_programs import built, run
from execute import compile_module
from hypothesis import HealthCheck, given, settings
from in_process import run_tool
from random_graphs import Graph, graphs
from random_regions import region_inputs, region_program
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.examples import example
from glow_mlir.runtime.bundle import read_bundle
from glow_mlir.tools import glow_compile

CALLER = """
#include <stdio.h>
#include <string.h>
#include "digits.h"

static _Alignas(DIGITS_ALIGNMENT) uint8_t constants[DIGITS_CONSTANTS_SIZE];
static _Alignas(DIGITS_ALIGNMENT) uint8_t activations[DIGITS_ACTIVATIONS_SIZE];

int main(int count, char **names) {
  const glow_arguments arguments = DIGITS_ARGUMENTS(constants, 0, activations);
  FILE *file = fopen(names[count - 2], "rb");
  if (!file || fread(constants, 1, sizeof constants, file) != sizeof constants) return 1;
  fclose(file);
  file = fopen(names[count - 1], "rb");
  uint8_t *input = activations + DIGITS_INPUT_IMAGE_OFFSET;
  if (!file || fread(input, 1, DIGITS_INPUT_IMAGE_SIZE, file) != DIGITS_INPUT_IMAGE_SIZE) return 2;
  fclose(file);
  if (digits_run(&arguments)) return 3;
  float result[DIGITS_OUTPUT_PROBABILITIES_SIZE / sizeof(float)];
  memcpy(result, activations + DIGITS_OUTPUT_PROBABILITIES_OFFSET, sizeof result);
  for (size_t i = 0; i < sizeof result / sizeof *result; i++) printf("%.9g\\n", (double)result[i]);
  return 0;
}
"""


def check(module: ModuleOp, inputs: list[dict[str, np.ndarray]]) -> None:
    """Fail where a bit of a result depends on where inputs and outputs are."""
    apart = compile_module(module.clone(), verify_each=False)
    together = compile_module(module.clone(), verify_each=False, exchanged=True)
    exchanged = sum(place != -1 for place in together.places)
    assert exchanged
    assert together.activations <= apart.activations + sum(
        -(-int(np.prod(shape, dtype=np.int64)) * dtype.itemsize // 64) * 64 for _, shape, dtype, _ in apart.bindings
    )
    for given_ in inputs:
        expected = apart.run(given_)
        for name, found in together.run(given_).items():
            assert found.tobytes() == expected[name].tobytes(), name


@settings(
    max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(graph=graphs())
def test_graphs_give_the_same_bits(graph: Graph) -> None:
    check(graph.module, [graph.inputs])


@pytest.mark.parametrize("seed", range(300, 306))
def test_branches_and_loops_give_the_same_bits(seed: int) -> None:
    check(region_program(seed), region_inputs(seed))


def compiled(folder: Path, *arguments: object) -> tuple[int, str]:
    """Run `glow-compile` in a folder: exit code and stderr."""
    done = run_tool(glow_compile.main, list(map(str, arguments)), program="glow-compile", directory=folder)
    return done.code, done.stderr.decode()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, and its bundle with inputs and outputs among the activations."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "digits.onnx").write_bytes(example("digits.onnx"))
    code, told = compiled(folder, "digits.onnx", "--bind", "N=1", "--reuse-inputs", "-o", "out")
    assert code == 0, told
    return folder


@pytest.mark.extra
def test_c_finds_inputs_and_outputs_in_the_activations(digits: Path) -> None:
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    (digits / "image").write_bytes(image.tobytes())
    (digits / "caller.c").write_text(CALLER)
    out = digits / "out"
    program = built(digits / "program", ["-std=c11", digits / "caller.c", out / "digits.o"], f"-I{out}")
    found = np.array(run(program, out / "digits.weights.bin", digits / "image").split(), np.float32)
    session = InferenceSession(digits / "digits.onnx", dimensions={"N": 1}, cache=False)
    np.testing.assert_array_equal(found, session.run(None, {"image": image})[0][0])


def test_what_must_live_at_once_is_all_that_is_taken(digits: Path) -> None:
    """The input is read by the first layer alone, the output written by the last: they cost nothing here."""
    _, _, plain = read_bundle(digits / "out", None)
    (entry,) = plain.manifest.entries
    code, told = compiled(digits, "digits.onnx", "--bind", "N=1", "-o", "apart")
    assert code == 0, told
    _, _, apart = read_bundle(digits / "apart", None)
    assert entry.activations == apart.manifest.entries[0].activations
    assert "define DIGITS_MUTABLES_SIZE 1\n" in (digits / "out" / "digits.h").read_text()


def test_a_bundle_that_describes_itself_has_them_apart(digits: Path) -> None:
    code, told = compiled(digits, "digits.onnx", "--bind", "N=1", "--reuse-inputs", "--api", "dynamic", "-o", "no")
    assert code == 1
    assert "(hint: --api static with --reuse-inputs)" in told
