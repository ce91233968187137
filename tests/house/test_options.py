"""An option is declared once: docs/options.md shows all, and one that is added in its place is everywhere."""

from __future__ import annotations

import json
import re
import runpy
from typing import Any

from checkout import ROOT, run_python

PAGE = ROOT / "docs" / "options.md"

DECLARATIONS = ROOT / "glow_mlir" / "options" / "policy.py"

ADDING = """
import inspect, io, json, sys, types
from contextlib import redirect_stdout

name, place, text = "glow_mlir.options.policy", sys.argv[1], sys.argv[2]
module = sys.modules[name] = types.ModuleType(name)
module.__file__ = place
exec(compile(text, place, "exec"), vars(module))

from glow_mlir import InferenceSession, TrainingSession
from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.session_keywords import KEYWORDS
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.target import str_of
from glow_mlir.driver.pipelines import parse_pipeline
from glow_mlir.errors import OptionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.tools.arguments.run_arguments import code_options, parse_arguments

found = {}
module = parse_module("glow_high.func @main() {\\n}", new_context(), "empty.mlir")
for item in parse_pipeline("assign-target{target=avx2 prefetch=far}").passes:
    item.apply(new_context(), module)
found["module"] = module_text(parse_module(module_text(module), new_context(), "again.mlir"))
target = get_backend("cpu").target("avx2,prefetch=far")
found["read"] = target.policy.prefetch
found["text"] = str_of(target)
try:
    get_backend("cpu").target("avx2,prefetch=away")
except OptionError as error:
    found["error"] = str(error)
keys = [CompileOptions("cpu", fields=fields).key_parts() for fields in ({}, {"prefetch": "far"})]
found["keys"] = len(set(keys))
if 'Flag("--prefetch")' in text:
    found["flag"] = code_options(parse_arguments(["model.onnx", "--prefetch", "far"]))["prefetch"]
    found["is keyword"] = "prefetch" in KEYWORDS
    session = InferenceSession("examples/digits.onnx", prefetch="far")
    found["session"] = session.options.fields["prefetch"]
    found["signature"] = str(inspect.signature(InferenceSession).parameters["prefetch"])
    try:
        TrainingSession("examples/digits.onnx", dimensions={"N": 1}, prefetch="away")
    except OptionError as error:
        found["training"] = str(error)
    with redirect_stdout(io.StringIO()) as shown:
        try:
            parse_arguments(["--help"])
        except SystemExit:
            found["help"] = " ".join(shown.getvalue().split())
print(json.dumps(found))
"""
"""Adds a line to the declarations of targets, and asks all who deal with options about it."""


def test_what_is_generated_is_fresh() -> None:
    generator = runpy.run_path(str(ROOT / "docs" / "generate_options.py"))
    assert generator["written"](PAGE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8")
    assert f"{generator['keyword_types']()}\n" == generator["TYPES"].read_text(encoding="utf-8")


def added(more: str = "") -> dict[str, Any]:
    """What is found with the line of docs/options.md behind the last option of its kind, and `more` in it."""
    (line,) = re.findall(r"^    prefetch: .*\n", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    text = DECLARATIONS.read_text(encoding="utf-8")
    place = text.index("@dataclass(frozen=True)\nclass Limits")
    line = f"{line.rstrip()[:-1]}{more})"
    return json.loads(run_python(ADDING, str(DECLARATIONS), f"{text[:place].rstrip()}\n{line}\n\n\n{text[place:]}"))


def test_an_option_takes_one_line() -> None:
    found = added()
    assert 'prefetch = "far"' in found["module"]
    assert 'prefetch = "far"' in found["text"]
    assert found["read"] == "far"
    assert found["error"] == "no prefetch 'away' (hint: there are near, far)"
    assert found["keys"] == 2


def test_a_flag_takes_a_few_words() -> None:
    found = added(', flag=Flag("--prefetch")')
    assert found["flag"] == "far"
    assert found["is keyword"]
    assert found["session"] == "far"
    assert found["signature"] == "prefetch: 'str | None' = None"
    assert found["training"] == "no prefetch 'away' (hint: there are near, far)"
    assert "--prefetch {near,far} how far ahead kernels fetch" in found["help"]


def test_every_flag_of_the_page_is_one_of_a_tool() -> None:
    options = runpy.run_path(str(ROOT / "docs" / "generate_options.py"))["OPTIONS"]
    flags = {item.option.flag.name if item.option.flag else item.option.within for item in options}
    text = "from glow_mlir.tools.%s import %s; %s(['--help'])"
    tools = (("arguments.run_arguments", "parse_arguments"), ("glow_compile", "main"))
    code = "import contextlib\n" + "".join(
        f"with contextlib.suppress(SystemExit):\n    {text % (module, name, name)}\n" for module, name in tools
    )
    assert flags - {""} <= set(re.findall(r"--[\w-]+", run_python(code)))


def test_every_option_says_what_it_does() -> None:
    options = runpy.run_path(str(ROOT / "docs" / "generate_options.py"))["OPTIONS"]
    assert all(item.option.help and not item.option.help.endswith(".") for item in options)
    assert all(item.option.domain is None or str(item.option.domain) for item in options)
