"""The HTML representation of a session in notebooks; text from the model is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.errors import printable
from glow_mlir.runtime.artifact import Entry
from glow_mlir.runtime.code_sizes import sizes_in_words
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.machine_code import MachineCode
from glow_mlir.support.symbols import Dimension

if TYPE_CHECKING:
    from glow_mlir.api.onnxruntime.inference_session import InferenceSession
    from glow_mlir.api.onnxruntime.node_arg import NodeArg

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def session_page(session: InferenceSession) -> str:
    """The page of a session: inputs and outputs, code sizes, memory, and the time of each stage."""
    model = session.model
    name = model.name if isinstance(model, Path) else "a model in memory"
    parts = [
        f"<p><b>{_text(type(session).__name__)}</b> of {_text(name)}</p>",
        _table(("", "name", "type", "shape"), _arguments(session.get_inputs(), session.get_outputs())),
        _table(("compiled for", ""), _compilation(session)),
        _folded("all of the target", sorted({entry.target for entry in _entries(session)})),
        _table(("memory", ""), _memory(session)),
        _table(("stage", "seconds"), _stages(session)),
    ]
    return f"<div>{''.join(parts)}</div>"


def _arguments(inputs: Iterable[NodeArg], outputs: Iterable[NodeArg]) -> list[tuple[str, ...]]:
    """The rows of inputs and outputs: role, name, type and shape."""
    named = [("input", item) for item in inputs] + [("output", item) for item in outputs]
    return [(role, item.name, item.type, ", ".join(_size(size) for size in item.shape)) for role, item in named]


def _size(size: object) -> str:
    """A size as text: numbers and names, and a question mark for an unknown one."""
    return "…" if size is ... else "?" if size is None else str(size)


def _compilation(session: InferenceSession) -> list[tuple[str, ...]]:
    """Backend, target, threads and precision, and the sizes that code exists for."""
    options, loaded = session.options, _loaded(session)
    machines = {entry.machine or entry.target for entry in _entries(session)}
    kept = session.specializations
    rows = [
        ("backend", options.backend),
        ("target", options.target or ""),
        ("machine", "; ".join(sorted(machines))),
        ("threads", str(options.threads or 1)),
        ("precision", options.precision),
        ("sizes", "; ".join(_sizes(item.sizes) for item in kept) if kept else "" if loaded else "compiled when called"),
    ]
    return [row for row in rows if row[1]]


def _sizes(sizes: Mapping[str, Dimension]) -> str:
    """Free dimensions and their sizes as text."""
    return ", ".join(f"{label}={size}" for label, size in sizes.items()) or "all"


def _memory(session: InferenceSession) -> list[tuple[str, ...]]:
    """The sizes of code, constants and arena, if known."""
    loaded = _loaded(session)
    if not isinstance(loaded, MachineCode):
        return []
    return [(words, _bytes(size)) for words, size in sizes_in_words(loaded, session.machine_entry).items()]


def _stages(session: InferenceSession) -> list[tuple[str, ...]]:
    """The time of each stage of the compilation."""
    seconds = session.compile_seconds
    if not seconds:
        return [("from the cache", "0")] if _loaded(session) else []
    return [*((stage, f"{took:.3f}") for stage, took in seconds.items()), ("total", f"{sum(seconds.values()):.3f}")]


def _loaded(session: InferenceSession) -> Executable | None:
    """The executable; `None` if the model is compiled when it is called, and has not been called."""
    return session.executable if session.specializations or not session.is_deferred else None


def _entries(session: InferenceSession) -> tuple[Entry, ...]:
    """The entries of the executable, if it is machine code."""
    loaded = _loaded(session)
    return loaded.manifest.entries if isinstance(loaded, MachineCode) else ()


def _folded(title: str, lines: Iterable[str]) -> str:
    """Lines that unfold when the title is clicked; empty without lines."""
    body = "".join(f"<p><code>{_text(line)}</code></p>" for line in lines)
    return f"<details><summary>{_text(title)}</summary>{body}</details>" if body else ""


def _bytes(count: int) -> str:
    """A number of bytes as text."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.3g} {_UNITS[unit]}" if unit else f"{count} bytes"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table; empty without rows."""
    if not rows:
        return ""
    top = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: str) -> str:
    """A text escaped for HTML: names in a model may have any character."""
    return escape(printable(cell))
