"""Device support for an operator: directly, or after lowering."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DeviceSpec
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import GetOp, PlaceholderOp
from glow_mlir.driver.pipelines import LOWERED
from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.run_time_sizes import apply_pass
from glow_mlir.ir.traversal import subtree
from glow_mlir.partitioning.extraction import extracted, is_free, values_read

ALONE = "alone"
"""The name of the function with a single operator, used for queries."""


class Support:
    """The support of devices for the operators of one module, cached per form of operator."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[Hashable, str] = {}

    def refusal(self, op: Operation, device: DeviceSpec) -> str:
        """The reason why a device does not execute an operator, in a few words; empty if it does."""
        key = device.target, _form(op, self._storage)
        if key not in self._known:
            self._known[key] = self._find(op, device)
        return self._known[key]

    def _find(self, op: Operation, device: DeviceSpec) -> str:
        backend = get_backend(device.target.backend)
        if reason := backend.refuses(op, self._storage, device.target):
            return reason
        if all(backend.supports(inner) for inner in subtree(op) if isinstance(inner, HighOp)):
            return ""
        if LOWERED.name not in backend.pipeline().stage_names:
            return "the backend lowers nothing"
        return self._lowered(op, device, backend)

    def _lowered(self, op: Operation, device: DeviceSpec, backend: Backend) -> str:
        """The reason why a device does not execute the lowered operator."""
        module, context = self._alone(op, device), new_context()
        pipeline = backend.pipeline()
        stage = pipeline.stages[pipeline.position(LOWERED.name)]
        try:
            for item in stage.passes():
                apply_pass(item, context, module)
        except GlowError as error:
            return error.reason
        return ""

    def _alone(self, op: Operation, device: DeviceSpec) -> ModuleOp:
        """A module whose only function has one operator; its non-constant operands are inputs."""
        module = ModuleOp([])
        storage = Storage(module)
        given: dict[SSAValue, str] = {}
        for number, value in enumerate(values_read(op)):
            owner = value.owner
            if isinstance(owner, GetOp) and self._storage.is_constant(value):
                if owner.storage_name not in storage.by_name:
                    storage.add(self._storage.by_name[owner.storage_name].clone())
            elif not (isinstance(owner, HighOp) and is_free(owner)):
                given[value] = f"operand{number}"
                storage.add(PlaceholderOp.bound(given[value], _tensor(value), "input"))
        for inner in subtree(op):
            if isinstance(inner, GetOp) and inner.storage_name not in storage.by_name:
                storage.add(self._storage.by_name[inner.storage_name].clone())
        saved: dict[SSAValue, Sequence[str]] = {
            result: (f"result{number}",) for number, result in enumerate(op.results)
        }
        for result, (name,) in saved.items():
            storage.add(PlaceholderOp.bound(name, _tensor(result), "output"))
        module.body.block.add_op(extracted(ALONE, [op], storage, given, saved, device.target))
        return module


def _tensor(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def _form(op: Operation, storage: Storage) -> Hashable:
    """The key that determines support: kind, properties, types, and which operands are constants."""
    if op.regions:
        return op
    operands = tuple((value.type, storage.is_constant(value)) for value in op.operands)
    return op.name, operands, tuple(op.result_types), tuple(sorted(op.properties.items(), key=lambda item: item[0]))
