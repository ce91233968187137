"""
Grammars of answers that call tools: the forms that `tool_calls` reads, with arguments that fit the tools' schemas.

A template that shows `<tool_call>` asks for such calls; others get a list of objects, as in vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.generation.grammar import Grammar, check_schema
from glow_mlir.generation.tool_calls import BEGIN, END
from glow_mlir.support.json_values import is_mapping, is_sequence

REQUIRED = "required"

FREE = ("auto", "none")
"""Values of `tool_choice` that leave the text free."""

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""The schema of a function that takes none."""

STYLE: Mapping[str, Any] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as Python writes it: a model that may go on with white space may never end."""

MAX_CALLS = 16
"""The maximum number of calls in an answer."""


def grammar_of_calls(
    tools: Sequence[Any] | None, choice: str | Mapping[str, Any], *, is_parallel: bool, template: str | None
) -> Grammar:
    """
    The grammar of answers that call tools: up to 16 calls if `is_parallel`, otherwise one.

    `choice` is OpenAI's `tool_choice`: `required`, or an object that names a function, which is called once. `template`
    is the text of the model's template. Raises `InputError` for tools without names or with damaged schemas, and for a
    name that none of them has.
    """
    name = None if choice == REQUIRED else name_of(choice)
    functions = [_function(number, tool) for number, tool in enumerate(tools or ())]
    if not functions:
        raise InputError("there are no tools that could be called")
    names = [function["name"] for function in functions]
    if len(set(names)) < len(names):
        raise InputError("two tools have the same name")
    if name is not None:
        functions = [function for function in functions if function["name"] == name]
        if not functions:
            raise InputError(f"there is no tool '{name:.100}'", hint=f"tools are {', '.join(names):.200}")
    definitions = {str(number): _parameters(number, function) for number, function in enumerate(functions)}
    call = {"anyOf": [_call(number, function["name"]) for number, function in enumerate(functions)]}
    most = MAX_CALLS if is_parallel and name is None else 1
    head = {"$defs": definitions, "x-guidance": STYLE}
    if template is not None and BEGIN in template:
        begin, end = json.dumps(f"{BEGIN}\n"), json.dumps(f"\n{END}")
        more = "" if most == 1 else f' ("\\n" call){{0,{most - 1}}}'
        rules = f"start: call{more}\ncall: {begin} json {end}\n"
        return Grammar("lark", rules + _rule({**head, **call}))
    calls = {**head, "type": "array", "minItems": 1, "maxItems": most, "items": call}
    return Grammar("lark", f"start: json\n{_rule(calls)}")


def name_of(choice: Any) -> str:
    """The name of the function that a `tool_choice` asks for; raises `InputError` if it is none that does."""
    found: Any = choice.get("function") if is_mapping(choice) and choice.get("type") == "function" else None
    name: Any = found.get("name") if is_mapping(found) else None
    if not isinstance(name, str):
        raise InputError(f"tool_choice must be {', '.join((*FREE, REQUIRED))}, or an object that names a function")
    return name


def _rule(schema: Mapping[str, Any]) -> str:
    return f"json: %json {json.dumps(schema)}\n"


def _function(number: int, tool: Any) -> Mapping[str, Any]:
    """The description of a tool's function."""
    found: Any = tool.get("function", tool) if is_mapping(tool) else None
    if not is_mapping(found) or not isinstance(found.get("name"), str):
        raise InputError(f"tool {number} has no function with a name")
    return found


def _call(number: int, name: str) -> dict[str, Any]:
    """The schema of a call, whose arguments are those of a definition."""
    properties = {"name": {"const": name}, "arguments": {"$ref": f"#/$defs/{number}"}}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _parameters(number: int, function: Mapping[str, Any]) -> Any:
    """The schema of a function's arguments as a definition of that number: its own references lead into it."""
    given: Any = function.get("parameters")
    if given is None:
        return NO_ARGUMENTS
    if not is_mapping(given):
        raise InputError(f"the parameters of the tool '{function['name']:.100}' are no schema")
    check_schema(given)
    return {**_referring(given, f"#/$defs/{number}"), "type": "object"}


def _referring(value: Any, root: str) -> Any:
    """A schema whose references to itself begin at `root`."""
    if is_mapping(value):
        return {
            key: root + item[1:]
            if key == "$ref" and isinstance(item, str) and item.startswith("#")
            else _referring(item, root)
            for key, item in value.items()
        }
    return [_referring(item, root) for item in value] if is_sequence(value) else value
