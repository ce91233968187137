"""Where gradients end in an exported program."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

DETACH = "aten.detach.default"
MODE = "wrap_with_set_grad_enabled"
"""The operator that contains code inside `torch.no_grad`; its first argument is the mode."""


def gradient_stops(program: ExportedProgram) -> tuple[str, ...]:
    """
    The nodes at which gradients of parameters stop: `detach`, and code inside `torch.no_grad`.

    A `detach` of constants, or of values computed only from inputs and buffers, does not count.
    """
    signature = program.graph_signature
    trained = {
        str(getattr(item.arg, "name", ""))
        for item in signature.input_specs
        if item.kind == InputKind.PARAMETER and program.state_dict[str(item.target)].requires_grad
    }
    found: list[str] = []
    for node in program.graph.nodes:
        if not any(given.name in trained for given in node.all_input_nodes):
            continue
        target = str(node.target)
        if target == DETACH or (target == MODE and node.args[0] is False):
            found.append(node.name)
        else:
            trained.add(node.name)
    return tuple(found)
