"""Several devices as one backend: a module is split into partitions, each compiled by the backend of its device."""

from __future__ import annotations

from xdsl.ir import Operation

from glow_mlir.backends.heterogeneous import loader
from glow_mlir.backends.interface import AllocateConstants, Backend, Compiling, get_backend
from glow_mlir.codegen.build import zeroed
from glow_mlir.dialects.device import devices_of
from glow_mlir.dialects.target import Target
from glow_mlir.driver.pipelines import Pipeline, partitioned_pipeline
from glow_mlir.ir.registry import backend
from glow_mlir.partitioning.device_modules import device_modules
from glow_mlir.partitioning.host_programs import host_programs
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.bundled_partitions import bundled
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.partitions import DevicePart, PartitionedArtifact, PartitionedExecutable


@backend("heterogeneous")
class HeterogeneousBackend(Backend):
    """
    Runs a model on several devices (Glow's heterogeneous runtime, paper §6).

    The option `devices` of the pass `assign-devices` names the devices; the options of `place-operators` control the
    placement.
    """

    name = "heterogeneous"

    def compile(
        self, compilation: Compiling, allocate: AllocateConstants | None = None
    ) -> Artifact | PartitionedArtifact:
        """Compile with the backends of all devices; the result is one artifact if all of theirs can be stored."""
        module = compilation.run()
        targets = {device.name: device.target for device in devices_of(module)}
        parts = tuple(
            DevicePart(
                device,
                targets[device].backend,
                targets[device].policy.threads,
                compilation.with_module(part, targets[device].backend),
            )
            for device, part in device_modules(module).items()
        )
        whole = PartitionedArtifact(parts, host_programs(module))
        is_kept = all(isinstance(part.artifact, Artifact) for part in parts)
        return bundled(whole, allocate or zeroed) if is_kept else whole

    def load(self, artifact: Artifact | PartitionedArtifact, threads: int) -> PartitionedExecutable:
        if isinstance(artifact, Artifact):
            return loader.load(artifact, threads)
        return PartitionedExecutable(artifact, {part.device: _loaded(part) for part in artifact.parts})

    def accepts(self, target: Target) -> bool:
        """The functions of partitions are for its devices."""
        return True

    def lacks(self, target: Target) -> str:
        own = target.backend == self.name
        return super().lacks(target) if own else get_backend(target.backend).lacks(target)

    def supports(self, op: Operation) -> bool:
        """All operators that some device supports; `place-operators` reports those that none does."""
        return True

    def pipeline(self, target: str | None = None, profile: bool = False) -> Pipeline:
        return partitioned_pipeline(self.name, target)


def _loaded(part: DevicePart) -> Executable:
    """Load the compiled part of one device on that device."""
    return get_backend(part.backend).load_on(part.artifact, part.number, part.threads)
