"""
Jinja's sandbox for templates that nobody vouches for: loops, calls and texts are bounded.

A template can loop for ever and make texts that fill the memory, by loops, recursive macros, lists that have each other
twice, or arithmetic on strings. Here whatever it does takes some of a budget.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any, cast

from glow_mlir.generation.template_budget import (
    MAX_PRECISION,
    STEP,
    TooMuchError,
    bounded,
    charge,
    check_growth,
    check_operator,
    counted,
    joined,
    made,
    read,
    shown,
    texts,
)
from glow_mlir.support.optional_packages import imported

__all__ = ["TooMuchError", "bounded", "environment"]

ABSENT = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr")
"""Filters for other texts than chats, whose results no one bounds."""

UNSAFE = frozenset(("translate", "maketrans"))
"""Methods of texts that can make far longer ones."""

LAZY = frozenset(("length", "count", "first", "last", "default", "d", "random", "list", "attr", "items", "reverse"))
"""Filters that do not look into the elements of a list."""


def _raise(message: Any) -> None:
    """What templates call to refuse a conversation."""
    raise imported("jinja2", "generate", "templates need the package jinja2").TemplateRuntimeError(str(message))


def _json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON without the escapes that HTML needs, as in transformers."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _now(form: str) -> str:
    """The time as text."""
    if len(form) > MAX_PRECISION:
        raise TooMuchError("the template writes the time in too long a form")
    return made(datetime.now().strftime(form))


@cache
def environment() -> Any:
    """The environment of templates; raises `OptionError` if the package `jinja2` is not installed."""
    jinja2: Any = imported("jinja2", "generate", "templates of chats need the package jinja2")
    found = _environment_class(jinja2)(
        trim_blocks=True, lstrip_blocks=True, extensions=_extensions(), finalize=shown, cache_size=0
    )
    filters = {name: function for name, function in found.filters.items() if name not in ABSENT}
    filters["tojson"] = _json
    found.filters = {name: _checked(name, function) for name, function in filters.items()}
    found.filters |= {"counted": counted, "texts": texts, "made": made, "read": read, "charge": charge}
    found.tests = {name: _reading(function) for name, function in found.tests.items()}
    found.globals = {name: value for name, value in found.globals.items() if name != "lipsum"}
    found.globals |= {"raise_exception": _raise, "strftime_now": _now}
    return found


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that looks at operands and results."""
    # Some filters have Jinja's context in front.
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    def checking(*operands: Any, **named: Any) -> Any:
        charge(STEP)
        # JSON of an iterator is an error, as in transformers.
        given = [value if name == "tojson" else _whole(value) for value in operands]
        if name not in LAZY:
            read((given[first:], named))
        check_growth(name, given[first:], named)
        found = function(*given, **named)
        return counted(cast("Iterator[Any]", found)) if isinstance(found, Iterator) else made(found)

    # Jinja reads from attributes which filters want a context.
    checking.__dict__.update(getattr(function, "__dict__", {}))
    return checking


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """A test of values, such as `in`, that is charged with what it reads."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    def checking(*operands: Any) -> Any:
        charge(STEP)
        if len(operands) > first + 1:
            read(operands[first:])
        elif isinstance(operands[first], str):
            charge(len(operands[first]))
        return function(*operands)

    checking.__dict__.update(getattr(function, "__dict__", {}))
    return checking


def _whole(value: Any) -> Any:
    """A list of what an iterator goes over, which would be looked at no more."""
    return list(counted(cast("Iterator[Any]", value))) if isinstance(value, Iterator) else value


def _extensions() -> list[Any]:
    """`break` and `continue`, and the tag `generation`, whose text is rendered as it is."""
    nodes, extension = imported("jinja2.nodes", "generate", ""), imported("jinja2.ext", "generate", "")

    class Generation(extension.Extension):
        """Marks the text of an assistant, for training."""

        tags = frozenset(("generation",))

        def parse(self, parser: Any) -> Any:
            """The content, without the tag."""
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    return [Generation, extension.loopcontrols]


def _environment_class(jinja2: Any) -> Any:
    """The class of the environment, made when the package is there."""
    sandbox, nodes = imported("jinja2.sandbox", "generate", ""), imported("jinja2.nodes", "generate", "")
    loop_context = imported("jinja2.runtime", "generate", "").LoopContext

    class Sandbox(sandbox.ImmutableSandboxedEnvironment):
        """A sandbox with a budget."""

        intercepted_binops = frozenset(("+", "-", "*", "**", "%", "//", "/"))
        concat = staticmethod(joined)

        def _parse(self, source: str, name: str | None, filename: str | None) -> Any:
            """A template in which all work is charged."""
            return _charged(nodes, super()._parse(source, name, filename))

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            """Whether a template may read an attribute."""
            return attr not in UNSAFE and cast("bool", super().is_safe_attribute(obj, attr, value))

        def getitem(self, obj: Any, argument: Any) -> Any:
            """An element; tuples are hashed with all that is in them."""
            key: Any = read(argument) if isinstance(argument, tuple) else argument
            return cast("Any", super().getitem(obj, key))

        def call(self, context: Any, function: Any, *operands: Any, **named: Any) -> Any:
            """Call a function or a macro."""
            charge(3 * STEP)
            if isinstance(function, loop_context):
                operands = tuple(list(counted(value)) for value in operands)
            # Jinja wraps the methods that format text.
            method = getattr(function, "__wrapped__", function)
            text = getattr(method, "__self__", None)
            if isinstance(text, str | bytes | int | float):
                operands = tuple(_whole(value) for value in operands)
                read((text, operands, named))
                check_growth(method.__name__, [text, *operands], named)
            elif isinstance(text, dict):
                read(operands)
            return made(super().call(context, function, *operands, **named))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Compute an operator whose result may be large."""
            charge(STEP)
            check_operator(operator, left, right)
            return made(super().call_binop(context, operator, left, right))

    return Sandbox


def _filter(nodes: Any, value: Any, name: str) -> Any:
    """The value behind a filter."""
    return nodes.Filter(value, name, [], [], None, None).set_lineno(value.lineno or 1)


def _charged(nodes: Any, tree: Any) -> Any:
    """The tree, in which loops, macros, comparisons, slices and joined texts are charged."""
    for loop in tree.find_all((nodes.For, nodes.Macro, nodes.CallBlock)):
        # A round takes as long as its code is.
        work = nodes.Const(STEP + 4 * sum(1 for part in loop.body for _ in part.find_all(nodes.Node)))
        loop.body.insert(0, nodes.ExprStmt(_filter(nodes, work, "charge")).set_lineno(loop.lineno or 1))
    return _rewritten(nodes, tree)


def _rewritten(nodes: Any, value: Any) -> Any:
    """The tree below a node, rewritten."""
    if not isinstance(value, nodes.Node):
        return value
    for field, part in value.iter_fields():
        if isinstance(part, list):
            items = cast("list[Any]", part)
            setattr(value, field, [_rewritten(nodes, item) for item in items])
        elif isinstance(part, nodes.Node):
            setattr(value, field, _rewritten(nodes, part))
    return _replacement(nodes, value)


def _replacement(nodes: Any, value: Any) -> Any:
    """What stands for a node in the tree, whose parts are rewritten."""
    if isinstance(value, nodes.For):
        value.iter = _filter(nodes, value.iter, "counted")
    elif isinstance(value, nodes.Compare):
        value.expr = _read(nodes, value.expr)
        for operand in value.ops:
            operand.expr = _read(nodes, operand.expr)
    elif isinstance(value, nodes.Pair):
        value.key = _read(nodes, value.key)
    elif isinstance(value, nodes.Getitem) and isinstance(value.arg, nodes.Slice):
        return _filter(nodes, value, "made")
    elif isinstance(value, nodes.Concat):
        return _filter(nodes, nodes.List(value.nodes).set_lineno(value.lineno or 1), "texts")
    return value


def _read(nodes: Any, value: Any) -> Any:
    """A value that is charged where it is read, unless the template has it."""
    return value if isinstance(value, nodes.Const) else _filter(nodes, value, "read")
