"""
Runs the code on pages of the documentation, and compares what it prints with what the page says.

    python tests/support/run_snippets.py                        # all pages
    python tests/support/run_snippets.py docs/get-started.md    # some
    python tests/support/run_snippets.py --write docs/ladder.md # put what is printed where the page says otherwise

A page is run from top to bottom in an empty folder, in one Python process, by a reader who has nothing but the package
and the page: `newcomer.py` says what that is. What a block is, its first line says:

| | |
|---|---|
| `python`, `sh` | is run; the blocks of a page share their variables, exported ones as well, and their folder |
| `mlir`, `toml` | is read, by `glow-opt` and by `tomllib` |
| `… title="output"` | is what the block before it printed; `…` stands for any text, and alone on a line for any lines |
| `… title="dialects/glow_high/math.py"` | is an excerpt of this file: its lines are there, in this order |
| `… title="my_pass.py"` | is written to this file |
| `… fragment` | cannot stand alone; operations, C types and targets of make that it names exist |

Nothing is run that is not shown. Blocks without a language are no code.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

from beside_calls import settle
from checkout import ROOT, make_targets
from in_process import Finished, find_tool, run_tool
from newcomer import UNCHANGED, Newcomer

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")])

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_TITLE = re.compile(r'title="([^"]+)"')
_SHELL = re.compile(r"[|<>$;&`]|\\\n")
_COMMENT = re.compile(r"(?<!\S)#.*")
_OMITTED = ("…", "...")


class SnippetError(Exception):
    """A block of a page does not do what the page says."""


@dataclass(frozen=True)
class Block:
    """A block of code on a page: its language, title, text without indentation, and where it stands."""

    language: str
    title: str
    fragment: bool
    text: str
    line: int
    start: int
    end: int

    @property
    def lines(self) -> list[str]:
        """The lines that say something."""
        return [line for line in self.text.splitlines() if line.strip()]


def blocks_of(page: str) -> Iterator[Block]:
    """The blocks of a page, in their order."""
    for match in _BLOCK.finditer(page):
        info = match["info"]
        title = _TITLE.search(info)
        language, *attributes = re.sub(_TITLE, "", info).split() or [""]
        indent = len(match["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in match["text"].splitlines(keepends=True))
        line = page.count("\n", 0, match.start()) + 1
        yield Block(language, title[1] if title else "", "fragment" in attributes, text, line, *match.span("text"))


@dataclass
class Page:
    """What the blocks of a page share: the folder they run in, variables of Python, and what was printed last."""

    folder: Path
    variables: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""

    def run(self, block: Block) -> None:
        """Do what a block says; raises `SnippetError` where that is not what the page says."""
        if block.title == "output":
            check_output(block, self.printed)
        elif "/" in block.title and (ROOT / block.title).is_file():
            check_excerpt(block, (ROOT / block.title).read_text(encoding="utf-8"))
        elif block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.fragment:
            check_fragment(block)
        elif block.language:
            if (runner := RUNNERS.get(block.language)) is None:
                raise SnippetError(f"nothing runs '{block.language}' (hint: a title, or `fragment`)")
            self.printed = runner(self, block)
        elif block.text.startswith("glow-"):
            raise SnippetError("commands are blocks of `sh`")


def run_python(page: Page, block: Block) -> str:
    """What a block of Python prints."""
    name = f"line-{block.line}"
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + block.text, name, "exec"), page.variables)
    except Exception as error:
        raise SnippetError("".join(traceback.format_exception(error)[-3:]).strip()) from error
    return printed.getvalue()


def run_shell(page: Page, block: Block) -> str:
    """What commands print. Where no shell is needed, our tools run in this process, and are imported once."""
    text = _COMMENT.sub("", block.text)
    commands = [] if _SHELL.search(text) else [shlex.split(line) for line in text.splitlines() if line.strip()]
    if not commands or not all(find_tool(command[0]) for command in commands):
        return _run_bash(page, block)
    return "".join(_checked(_run_here(page, *command)) for command in commands)


def _run_here(page: Page, program: str, *arguments: str) -> Finished:
    """Run a tool in this process. It does not see the folder's modules: that is not the folder of the program."""
    tool = find_tool(program)
    assert tool is not None
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if entry != str(page.folder)]
    try:
        return run_tool(tool, arguments, program=program, directory=page.folder)
    finally:
        sys.path[:] = path


def _run_bash(page: Page, block: Block) -> str:
    """Run commands in a shell, and keep what they export."""
    with tempfile.NamedTemporaryFile() as file:
        command = ["bash", "-euo", "pipefail", "-c", f"{block.text}\nenv -0 > {file.name}"]
        done = subprocess.run(command, cwd=page.folder, capture_output=True, check=False)
        printed = _checked(Finished(done.returncode, done.stdout, done.stderr))
        found = dict(entry.split("=", 1) for entry in file.read().decode().split("\0") if entry)
    os.environ.update({name: value for name, value in found.items() if name not in UNCHANGED})
    invalidate_caches()  # For what was installed.
    return printed


def _checked(finished: Finished) -> str:
    if finished.code:
        raise SnippetError(f"exit code {finished.code}\n{finished.stdout.decode()}{finished.stderr.decode()}".rstrip())
    return finished.stdout.decode()


def read_mlir(page: Page, block: Block) -> str:
    """What `glow-opt` prints of a module."""
    (page.folder / "snippet.mlir").write_text(block.text, encoding="utf-8")
    return _checked(_run_here(page, "glow-opt", "snippet.mlir"))


def read_toml(page: Page, block: Block) -> str:
    """Nothing, for text that is TOML."""
    tomllib.loads(block.text)
    return ""


RUNNERS: dict[str, Callable[[Page, Block], str]] = {
    "python": run_python,
    "sh": run_shell,
    "mlir": read_mlir,
    "toml": read_toml,
}
"""Language → what runs its blocks."""


def check_output(block: Block, printed: str) -> None:
    """Compare what was printed with what the page says."""
    pattern = "".join(map(_line_pattern, block.text.splitlines()))
    if not re.fullmatch(pattern + r"\s*", printed if printed.endswith("\n") else printed + "\n"):
        raise SnippetError(f"what was printed is not what the page says:\n{printed}")


def _line_pattern(line: str) -> str:
    if line.strip() in _OMITTED:
        return r"(?:[^\n]*\n)*?"
    return "[^\\n]*?".join(map(re.escape, line.rstrip().split("…"))) + " *\n"


def check_excerpt(block: Block, source: str) -> None:
    """Find the lines of an excerpt in the file, in their order."""
    lines = iter(line.strip() for line in source.splitlines())
    for line in block.lines:
        wanted = line.strip().removesuffix(" ...")
        if wanted in _OMITTED:
            continue
        if not any(found == wanted for found in lines):
            raise SnippetError(f"{block.title} has no such line, or not behind the one before: {wanted}")


def check_fragment(block: Block) -> None:
    """Find what a fragment names: operations of our dialects, types of the headers of bundles, targets of make."""
    for what, (pattern, known) in NAMED.items():
        if (names := pattern.findall(block.text)) and (unknown := set(names) - known()):
            raise SnippetError(f"there is no {what} {min(unknown)}")


def _operations() -> set[str]:
    from glow_mlir.ir.universe import dialect

    operations = {operation.name for name in ("glow_high", "glow_low") for operation in dialect(name).operations}
    return operations | {"glow_high.func", "glow_low.func"}


def _words_of_bundles() -> set[str]:
    sources = (path.read_text(encoding="utf-8") for path in ROOT.glob("glow_mlir/bundle/*.py"))
    return {word for source in sources for word in re.findall(r"glow_\w+", source)}


NAMED: dict[str, tuple[re.Pattern[str], Callable[[], set[str]]]] = {
    "operation": (re.compile(r"\bglow_(?:high|low)\.\w+"), _operations),
    "C type": (re.compile(r"\bglow_[a-z_]+\b(?![.])"), _words_of_bundles),
    "target of make": (re.compile(r"^make ([\w-]+)", re.MULTILINE), make_targets),
}
"""What fragments name → how it looks, and what there is."""


def run_page(path: Path, write: bool = False) -> list[str]:
    """
    Run a page and return what is wrong with it, a text for each block; `write` mends its outputs.

    This process is the reader's from then on: each page needs one of its own.
    """
    page_text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    faults: list[str] = []
    written: list[tuple[Block, str]] = []
    with tempfile.TemporaryDirectory() as root:
        newcomer = Newcomer(Path(root))
        newcomer.arrive()
        sys.path.insert(0, str(newcomer.folder))
        os.chdir(newcomer.folder)
        page = Page(newcomer.folder)
        for block in blocks_of(page_text):
            try:
                page.run(block)
            except SnippetError as error:
                if write and block.title == "output":
                    written.append((block, page.printed))
                else:
                    faults.append(f"{name}:{block.line}: {error}")
        settle()  # What is compiled beside calls goes into the folder.
        os.chdir(ROOT)
    for block, printed in reversed(written):
        page_text = page_text[: block.start] + printed.rstrip() + "\n" + page_text[block.end :]
    if written:
        path.write_text(page_text, encoding="utf-8")
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pages; 1 where one is wrong."""
    parser = argparse.ArgumentParser(description="Run the code on pages of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="pages (default: all)")
    parser.add_argument("--write", action="store_true", help="put what was printed in the place of what the page says")
    options = parser.parse_args(arguments)
    if len(options.pages) != 1:  # A page may change the process, so each has one of its own.
        flags = ["--write"] if options.write else []
        commands = ([sys.executable, __file__, *flags, str(page)] for page in options.pages or PAGES)
        return max(subprocess.run(command, check=False).returncode for command in commands)
    faults = run_page(options.pages[0].resolve(), options.write)
    for fault in faults:
        print(fault, file=sys.stderr)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
