"""Graphs of `torch.fx` as plain data."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import Any, cast

import sympy
import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import unset_fake_temporarily

from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.torch.graph_signature import COPY_INTO
from glow_mlir.frontends.torch.traced_graph import (
    ATTRIBUTE,
    CONSTANT,
    Argument,
    Expression,
    Reference,
    SourceLocation,
    TracedGraph,
    TracedInput,
    TracedNode,
    TracedTensor,
    TracedValue,
    Word,
)
from glow_mlir.torch.tensors import HOST, listed

WORDS: dict[type, str] = {
    torch.dtype: "dtype",
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def captured(graph: fx.Graph) -> TracedGraph:
    """
    Convert a graph of operators, whose nodes have `meta["val"]`, to plain data.

    Raises `UnsupportedError` for nodes that are not operator calls.
    """
    return _Capture().run(graph)


class _Capture:
    """The state of a conversion."""

    def __init__(self) -> None:
        self._results: dict[fx.Node, tuple[fx.Node, int]] = {}
        """Node that selects one of several results → the node with the results, and the index."""
        self._symbols: dict[str, tuple[int, int | None]] = {}
        self._bases: dict[fx.Node, fx.Node] = {}
        """Input, or view of one → the input."""

    def run(self, graph: fx.Graph) -> TracedGraph:
        inputs: list[TracedInput] = []
        nodes: list[TracedNode] = []
        outputs: tuple[Argument, ...] = ()
        for node in graph.nodes:
            if node.op == "placeholder":
                self._bases[node] = node
                inputs.append(TracedInput(node.name, cast("Any", self._value(node, node.meta["val"]))))
            elif node.op == "output":
                (returned,) = node.args
                outputs = tuple(map(self._argument, listed(returned)))
            elif node.target is operator.getitem and isinstance(node.args[0], fx.Node) and _has_several(node.args[0]):
                self._results[node] = node.args[0], int(cast("int", node.args[1]))
                self._follow_view(node, is_view=True)
            elif target_name(node) == COPY_INTO:
                # Later readers read the copied value.
                self._results[node] = self._results.get(node.args[1], (node.args[1], 0))
                nodes.append(self._node(node))
            elif node.op == "get_attr":
                nodes.append(self._constant(graph, node))
            else:
                self._follow_view(node, bool(getattr(node.target, "is_view", False)))
                nodes.append(self._node(node))
        return TracedGraph(tuple(inputs), tuple(nodes), outputs, self._symbols)

    def _node(self, node: fx.Node) -> TracedNode:
        if node.op != "call_function":
            raise UnsupportedError(f"a node of the kind '{node.op}' is not supported", node=node.name)
        arguments = tuple(map(self._argument, node.args))
        keywords = {name: self._argument(value) for name, value in node.kwargs.items()}
        results = tuple(self._value(node, item) for item in listed(node.meta.get("val")))
        return TracedNode(node.name, target_name(node), arguments, keywords, results, source_location(node))

    def _constant(self, graph: fx.Graph, node: fx.Node) -> TracedNode:
        """A tensor that is an attribute of the graph's module."""
        value = operator.attrgetter(str(node.target))(graph.owning_module)
        if not isinstance(value, torch.Tensor):
            return TracedNode(node.name, ATTRIBUTE, (), {}, (None,), source_location(node))
        with unset_fake_temporarily():
            content = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return TracedNode(
            node.name, CONSTANT, (content.hex(),), {}, (self._tensor(node, value),), source_location(node)
        )

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, fx.Node):
            if value in self._results:
                source, index = self._results[value]
                return Reference(source.name, index)
            return Reference(value.name)
        if isinstance(value, tuple | list):
            return tuple(map(self._argument, cast("Iterable[Any]", value)))
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._number(value)
        for kind, word in WORDS.items():
            if isinstance(value, kind):
                return Word(word, str(value).removeprefix("torch."))
        if value is None or isinstance(value, int | float | str):
            return value
        return Word("complex", str(value)) if isinstance(value, complex) else str(value)

    def _value(self, node: fx.Node, value: Any) -> TracedValue:
        if isinstance(value, torch.Tensor):
            return self._tensor(node, value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self._number(value)
        if value is None or isinstance(value, int | float | bool):
            return value
        return None

    def _tensor(self, node: fx.Node, value: torch.Tensor) -> TracedTensor:
        if not _is_plain(value):
            return TracedTensor(_unsupported_name(value), tuple(map(self._size, value.shape)))
        sizes, strides = tuple(map(self._size, value.shape)), tuple(map(self._size, value.stride()))
        hint = tuple(map(_hint, value.shape)), tuple(map(_hint, value.stride()))
        dtype, offset = str(value.dtype).removeprefix("torch."), self._size(value.storage_offset())
        return TracedTensor(dtype, sizes, strides, hint, self._view(node, value), offset)

    def _follow_view(self, node: fx.Node, is_view: bool) -> None:
        """Record that a node is a view of an input, if its operand is an input or a view of one."""
        source = node.args[0] if node.args else None
        if is_view and isinstance(source, fx.Node) and source in self._bases:
            self._bases[node] = self._bases[source]

    def _view(self, node: fx.Node, value: torch.Tensor) -> tuple[str, int | Expression] | None:
        """
        The input that a tensor is, or is a view of, and the offset from its first element; `None` for other tensors.
        """
        base = self._bases.get(node)
        whole = None if base is None else base.meta["val"]
        if base is None or not isinstance(whole, torch.Tensor) or whole.dtype != value.dtype:
            return None
        return base.name, self._size(value.storage_offset() - whole.storage_offset())

    def _size(self, size: int | torch.SymInt) -> int | Expression:
        if isinstance(size, int):
            return size
        found = self._number(size)
        return int(found.value) if found.word == "number" else found

    def _number(self, number: torch.SymInt | torch.SymFloat | torch.SymBool) -> Expression:
        node = number.node
        ranges: dict[Any, Any] = node.shape_env.var_to_range if node.shape_env is not None else {}
        for symbol in filter(operator.attrgetter("is_integer"), node.expr.free_symbols):
            known = ranges.get(symbol)
            least, most = (0, None) if known is None else (_bound(known.lower), _bound(known.upper))
            self._symbols[str(symbol)] = max(least or 0, 0), most
        return expression(node.expr)


def _is_plain(value: torch.Tensor) -> bool:
    """Whether operators support a tensor: dense real numbers in host memory."""
    is_dense = value.layout is torch.strided and not value.is_quantized and not value.is_neg()
    return is_dense and not value.is_complex() and value.device.type == HOST


def _unsupported_name(value: torch.Tensor) -> str:
    """A description, in place of the element type, of a tensor that no operator supports."""
    if value.device.type != HOST:
        return f"{value.dtype} on the device '{value.device}'".removeprefix("torch.")
    if value.is_neg():
        return f"{value.dtype} with another sign".removeprefix("torch.")
    if value.layout is not torch.strided:
        return f"{value.dtype} in the layout {value.layout}".replace("torch.", "")
    return str(value.dtype).removeprefix("torch.")


def _bound(bound: Any) -> int | None:
    """A bound of a symbol; `None` for infinity."""
    return int(bound) if bound.is_Integer and int(bound) < 1 << 40 else None


OPEN = 61
"""The example value of a data-dependent symbol: larger than 1, so that strides tell the order of axes."""


def _hint(size: int | torch.SymInt) -> int:
    """The size in the example."""
    if isinstance(size, int):
        return size
    node: Any = size.node
    if node.hint is not None:
        return int(node.hint)
    known: Any = node.shape_env.backed_var_to_val
    return int(node.expr.subs({symbol: known.get(symbol, OPEN) for symbol in node.expr.free_symbols}))


def expression(found: Any) -> Expression:
    """Convert an expression of sympy to plain data."""
    if isinstance(found, sympy.Symbol):
        return Expression("symbol" if found.is_integer else "float_symbol", value=str(found))
    if found in (sympy.true, sympy.false):
        return Expression("number", value=bool(found))
    if isinstance(found, sympy.Integer):
        return Expression("number", value=int(found))
    if isinstance(found, sympy.Float | sympy.Rational):
        return Expression("float", value=float(found))
    if isinstance(found, sympy.Pow) and isinstance(found.exp, sympy.Integer) and int(found.exp) > 0:
        return Expression("mul", (expression(found.base),) * int(found.exp))
    words = {"Add": "add", "Mul": "mul", "FloorDiv": "floordiv", "CleanDiv": "floordiv", "Mod": "mod"}
    words |= {"PythonMod": "mod", "Max": "max", "Min": "min"}
    kind = type(found).__name__
    return Expression(words.get(kind, kind), tuple(map(expression, found.args)))


def _has_several(node: fx.Node) -> bool:
    """Whether a node has several results."""
    return isinstance(node.meta.get("val"), tuple | list)


def target_name(node: fx.Node) -> str:
    """The name of the operator that a node calls, as `aten.add.Tensor` or `operator.mul`."""
    target: Any = node.target
    if isinstance(target, OpOverload):
        return str(cast("object", target))
    if isinstance(target, str):
        return target
    module = str(getattr(target, "__module__", "")).lstrip("_")
    return f"{module}.{getattr(target, '__name__', target)}"


def source_location(node: fx.Node) -> SourceLocation:
    """The module of the network, and the line of the program, of a node."""
    stack: dict[Any, Any] = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = ""
    for name, _ in cast("Iterable[tuple[Any, Any]]", stack.values()):
        path = str(name)
    trace = node.meta.get("stack_trace") or ""
    file, line = "", 0
    if frames := _FRAME.findall(trace):
        file, line = frames[-1][0], int(frames[-1][1])
    return SourceLocation(module_path(path), file, line)


def module_path(path: str) -> str:
    """Convert a module path from Dynamo's form, `L['self'].layer1.0`, to that of `named_modules`."""
    plain = re.sub(r"L\[['\"]self['\"]\]\.?", "", path)
    plain = re.sub(r"\._modules\[['\"]([^'\"]*)['\"]\]", r".\1", plain)
    plain = re.sub(r"getattr\((.*), ['\"]([^'\"]*)['\"]\)", r"\1.\2", plain)
    return re.sub(r"\[['\"]?([^'\"\]]*)['\"]?\]", r".\1", plain).strip(".")
