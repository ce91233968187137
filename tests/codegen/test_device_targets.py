"""Device functions for other devices than CUDA's: LLVM takes them, with memory of threads where the device has it."""

from __future__ import annotations

import pytest
from launched import NAME, launching
from quantized_models import residual

from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, ptr
from glow_mlir.codegen.device_functions import emit_device_functions
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.target import Target
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import low_functions

_ = launching

DEVICES = {
    "nvptx": Target("cpu", triple="nvptx64-nvidia-cuda", cpu="sm_80", vector_bits=128),
    "amdgpu": Target("cpu", triple="amdgcn-amd-amdhsa", cpu="gfx90a", vector_bits=128),
    # Vectors of SPIR-V have 16 lanes at most.
    "spirv": Target(
        "cpu",
        triple="spirv64-unknown-unknown",
        vector_bits=128,
        costs=(("independent_accumulators", 4), ("independent_vectors", 1)),
    ),
}


@pytest.mark.parametrize("device", DEVICES)
def test_memory_of_a_thread(device: str) -> None:
    """What is on the stack is where the device has it, and is read through plain pointers."""
    target = DEVICES[device]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr], launch={}) as (b, (out,)):
        place = b.stack(f32, 4)
        place.at(1, f32).store(b.constant(2.0, f32))
        out.store(place.at(1, f32).load(f32))
    assert assembly_text(emit_module(flattened(module.module)), target)


@pytest.mark.usefixtures("launching")
@pytest.mark.parametrize("device", DEVICES)
def test_kernels_of_a_model(device: str) -> None:
    module = import_model(residual())
    Compilation(module, backend=NAME, target="sse2", fields={"threads": 4}).run(until="allocated")
    (function,) = low_functions(module)
    builder = ModuleBuilder(DEVICES[device])
    emit_device_functions([function], builder)
    assert assembly_text(emit_module(flattened(builder.module)), DEVICES[device])
