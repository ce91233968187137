"""Variables: their handles, what they are at first, and reading and writing them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.variables import handle_of


@tflite_operator("CALL_ONCE")
def call_once(node: TfliteNode) -> None:
    """Run a graph before the first call: it gives variables their initial values."""
    node.graph.variables.initialize(node.options.number(0, "i"))


@tflite_operator("VAR_HANDLE")
def var_handle(node: TfliteNode) -> None:
    """A variable, as an operand of others."""
    number, name = handle_of(node.operator)
    node.graph.handles[number] = name


@tflite_operator("READ_VARIABLE")
def read_variable(node: TfliteNode) -> SSAValue:
    """The value of a variable."""
    return node.graph.variables.read(node.variable(0))


@tflite_operator("ASSIGN_VARIABLE")
def assign_variable(node: TfliteNode) -> None:
    """Give a variable a value."""
    node.graph.variables.assign(node.variable(0), node.input(1))
