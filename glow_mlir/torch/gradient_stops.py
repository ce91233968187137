"""Where gradients end in an exported program."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

DETACH = "aten.detach.default"
MODE = "wrap_with_set_grad_enabled"
"""The operator that has what stands within `torch.no_grad`; its first argument is the mode."""


def gradient_stops(program: ExportedProgram) -> tuple[str, ...]:
    """
    The nodes in front of which gradients of parameters end: `detach`, and what stands within `torch.no_grad`.

    Constants of `detach` count as little as what is computed of inputs and buffers alone.
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
