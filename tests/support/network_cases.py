"""What has to hold of a random network: the same numbers on every stage and as machine code, samples for themselves."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.printer
from execute import compile_module
from fuzzing import Fuzzer
from hostile_names import renamed
from influences import Arrays, influences
from models import random_inputs
from random_networks import network
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.interpreter.machine import run_function


def check_network(seed: int) -> None:
    """Check the random network of a seed, with a setting that the seed decides as well."""
    rng = np.random.default_rng([seed, 1])
    plain = network(seed)
    bound = [value.name for value in (*plain.graph.input, *plain.graph.output)]
    model, _ = renamed(plain, kept=bound)
    inputs = random_inputs(model, rng)
    accuracy = "strict" if rng.random() < 0.2 else "default"
    # Small networks meet in any real cache: with a small one, they are computed by lines as large ones are.
    cache = int(rng.choice([0, 1_000, 10_000, 100_000]))
    check_model(model, inputs, accuracy, threads=int(rng.integers(1, 4)), cache=cache)


def check_model(model: onnx.ModelProto, inputs: Arrays, accuracy: str, threads: int, cache: int) -> None:
    """
    Compare what each stage of a model computes, and its machine code, with the imported graph.

    `cache` is how many bytes the second cache is taken to have, where it is not 0.
    """
    module = import_model(model)
    expected = run_function(module.clone(), inputs)

    def compare(stage: Stage, reached: ModuleOp, _: float) -> None:
        assert_near(expected, run_function(reached.clone(), inputs), stage.name)

    pipeline = get_backend("cpu").pipeline()
    if cache:
        pipeline = pipeline.with_options("assign-target", l2_bytes=cache)
    compilation = Compilation(
        module,
        runner=PassRunner(verify_each=True),
        fields={"accuracy": accuracy, "threads": threads},
        pipeline=pipeline,
        observers=[compare],
    )
    compilation.run(until="allocated")
    program = compile_module(module, threads=threads)
    found = program.run(inputs)
    assert_near(expected, found, "machine code")
    # Where there is a batch of several samples, along the first axis.
    if len({len(array) for array in (*inputs.values(), *found.values())} - {1}) == 1:
        assert not influences(program.run, inputs)


def assert_near(expected: Arrays, found: Arrays, where: str) -> None:
    """Fail where results differ by more than rounding does in a network."""
    assert expected.keys() == found.keys()
    for name, wanted in expected.items():
        scale = float(np.abs(wanted).max(initial=1e-3))
        np.testing.assert_allclose(found[name], wanted, rtol=1e-3, atol=2e-4 * scale, err_msg=f"{name}: {where}")


def shown(seed: int) -> str:
    """The network of a seed as text."""
    return onnx.printer.to_text(network(seed))


STAGES = {"": Fuzzer(check_network, show=shown)}
"""The fuzzer of random networks, which looks at all stages at once."""
