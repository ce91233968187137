"""
The compilation log: which pass and pattern created, changed, merged or removed the operators of a node.

The location of every operator carries the names of its nodes; the log compares summaries of all operators before and
after each pass, and files the differences under those names.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, field, replace
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_high.storage import StorageOp
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.driver.pipelines import PassObserver
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.patterns import Application, following
from glow_mlir.support.dataclass import dataclass

FORMAT = 1
"""The version of the JSON form."""

WIDEST = 48
"""Maximum number of characters of a property in the log."""


@dataclass(frozen=True)
class Entry:
    """The effect of one pass on operators of one node."""

    run: int
    """The number of the pass, from 1; 0 is the module before all passes."""
    pass_name: str
    what: str
    """`found` before all passes, then `created`, `changed`, `removed` or `merged`."""
    op: str
    types: tuple[str, ...]
    """The types of its results, or of the values it stores, or else of its operands."""
    detail: str = ""
    pattern: str = ""
    """The responsible patterns, if the pass is defined by patterns."""
    count: int = 1
    """The number of operators of the node with this effect."""

    def text(self) -> str:
        """The entry in one line, without its pass."""
        times = f"{self.count} × " if self.count > 1 else ""
        detail = f" {self.detail}" if self.detail else ""
        types = f" : {', '.join(self.types)}" if self.types else ""
        by = f" by {self.pattern}" if self.pattern else ""
        return f"{self.what:8} {times}{self.op}{types}{detail}{by}"


@dataclass(frozen=True)
class Summary:
    """The summary of an operator that the log compares."""

    op: Operation
    name: str
    types: tuple[Attribute, ...]
    properties: Mapping[str, Attribute]
    sources: tuple[tuple[str, LocationAttr | None, int], ...]
    """For each operand its producer: kind, location and number of the result."""
    nodes: tuple[str, ...]
    """The nodes it comes from."""
    body: int
    """Number of operations in the body of an instruction."""

    @classmethod
    def of(cls, op: Operation) -> Summary:
        """The summary of an operator as it is now."""
        types = (op.tensor_type,) if isinstance(op, StorageOp) else [value.type for value in op.results or op.operands]
        sources = tuple(map(source_of, op.operands))
        return cls(
            op,
            op.name,
            tuple(types),
            {**op.attributes, **op.properties},
            sources,
            location_names(op.location),
            body_size(op),
        )


def source_of(value: SSAValue) -> tuple[str, LocationAttr | None, int]:
    """The producer of a value."""
    if isinstance(value, BlockArgument):
        return "argument", None, value.index
    owner = value.owner
    assert isinstance(owner, Operation)
    return owner.name, owner.location, owner.results.index(value)


def quoted(nodes: Iterable[str]) -> str:
    """Names of nodes for a line."""
    return ", ".join(f"'{node}'" for node in nodes)


Snapshot = dict[Operation, Summary]


@dataclass
class Culprits:
    """The patterns that created, changed or erased each operator during one pass."""

    created: dict[Operation, str] = field(default_factory=dict[Operation, str])
    changed: dict[Operation, dict[str, None]] = field(default_factory=dict[Operation, dict[str, None]])
    erased: dict[Operation, str] = field(default_factory=dict[Operation, str])

    @classmethod
    def of(cls, applications: Iterable[Application]) -> Culprits:
        """Collect the effects of pattern applications, in order."""
        found = cls()
        for application in applications:
            found.created |= dict.fromkeys(application.created, application.pattern)
            found.erased |= dict.fromkeys(application.erased, application.pattern)
            for op in application.changed:
                found.changed.setdefault(op, {})[application.pattern] = None
        return found


@dataclass
class CompilationLog(PassObserver):
    """An observer that writes the log of every node, in the order of nodes and passes."""

    nodes: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    runs: int = 0
    _snapshot: Snapshot = field(default_factory=dict[Operation, Summary])
    _module: ModuleOp | None = None
    _following: ExitStack = field(default_factory=ExitStack)
    _applications: list[Application] = field(default_factory=list[Application])

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        if module is not self._module:
            self._module, self._snapshot = module, snapshot(module)
            for summary in self._snapshot.values():
                self._add(summary.nodes, Entry(0, "", "found", summary.name, shown_types(summary)))
        self._applications = self._following.enter_context(following())

    def after(self, item: ModulePass, module: ModuleOp) -> None:
        self.runs += 1
        self._following.close()
        old, self._snapshot = self._snapshot, snapshot(module)
        for nodes, entry in differences(old, self._snapshot, Culprits.of(self._applications)):
            self._add(nodes, replace(entry, run=self.runs, pass_name=item.name))

    def failed(self, item: ModulePass, module: ModuleOp) -> None:
        self._following.close()

    def _add(self, nodes: Collection[str], entry: Entry) -> None:
        """File an entry under each node; an entry equal to the last one increments its count."""
        for node in nodes:
            entries = self.nodes.setdefault(node, [])
            if entries and replace(entries[-1], count=1) == entry:
                entries[-1] = replace(entries[-1], count=entries[-1].count + 1)
            else:
                entries.append(entry)

    def matching(self, pattern: str = "*") -> dict[str, list[Entry]]:
        """The entries of nodes whose name matches a pattern with `*`, `?` and `[…]`."""
        return {node: entries for node, entries in self.nodes.items() if fnmatchcase(node, pattern)}

    def text(self, pattern: str = "*") -> str:
        """Format the log of these nodes as text."""
        lines: list[str] = []
        for node, entries in self.matching(pattern).items():
            lines.append(f"node '{node}'")
            run = -1
            for entry in entries:
                if entry.run != run:
                    lines.append(f"  {entry.run:2} {entry.pass_name or 'before all passes'}")
                    run = entry.run
                lines.append(f"       {entry.text()}")
        return "".join(f"{line}\n" for line in lines)

    def json(self, pattern: str = "*") -> str:
        """The log of those nodes as JSON."""
        nodes = {node: [asdict(entry) for entry in entries] for node, entries in self.matching(pattern).items()}
        return json.dumps({"format": FORMAT, "nodes": nodes}, indent=1) + "\n"


def snapshot(module: ModuleOp) -> Snapshot:
    """Summarize all operators of a module that come from nodes."""
    return {op: Summary.of(op) for op in module.walk() if location_names(op.location) and not is_in_body(op)}


def is_in_body(op: Operation) -> bool:
    """Whether an op is part of an instruction, not an operator."""
    return isinstance(op.parent_op(), Instruction)


def body_size(op: Operation) -> int:
    """The number of ops inside an instruction; 0 for other operations."""
    if not isinstance(op, Instruction):
        return 0
    return sum(1 for region in op.regions for _ in region.walk())


def shown_types(summary: Summary) -> tuple[str, ...]:
    """The types of an operator as the log prints them."""
    return tuple(map(str, summary.types))


def differences(old: Snapshot, new: Snapshot, culprits: Culprits) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """The differences between two snapshots: entries with their nodes, removed operators first."""
    made = [summary for op, summary in new.items() if op not in old]
    kept = [(old[op], summary) for op, summary in new.items() if op in old and summary != old[op]]
    wider: dict[str, list[Summary]] = {}
    for summary in (*made, *(after for before, after in kept if before.nodes != after.nodes)):
        if len(summary.nodes) > 1:
            for node in summary.nodes:
                wider.setdefault(node, []).append(summary)
    for op, summary in old.items():
        if op not in new:
            yield from gone(summary, wider, culprits.erased.get(op, ""))
    for summary in made:
        shared = f"from {quoted(summary.nodes)}" if len(summary.nodes) > 1 else ""
        culprit = culprits.created.get(summary.op, "")
        yield summary.nodes, Entry(0, "", "created", summary.name, shown_types(summary), shared, culprit)
    for before, after in kept:
        detail = "; ".join(changes(before, after))
        culprit = ", ".join(culprits.changed.get(after.op, ()))
        yield after.nodes, Entry(0, "", "changed", after.name, shown_types(after), detail, culprit)


def gone(summary: Summary, wider: Mapping[str, list[Summary]], culprit: str) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """The entries for a removed operator: merged into one with more nodes, or removed."""
    for node in summary.nodes:
        heirs = [heir for heir in wider.get(node, ()) if set(heir.nodes) > set(summary.nodes)]
        into = f"into {', '.join(dict.fromkeys(heir.name for heir in heirs))}" if heirs else ""
        what = "merged" if heirs else "removed"
        yield (node,), Entry(0, "", what, summary.name, shown_types(summary), into, culprit)


def changes(before: Summary, after: Summary) -> Iterator[str]:
    """The changes of an operator that was kept."""
    if before.types != after.types:
        yield f"was {', '.join(shown_types(before))}"
    for key in sorted({*before.properties, *after.properties}):
        was, now = before.properties.get(key), after.properties.get(key)
        if was != now:
            yield f"{key} = {shortened(now)}" + ("" if was is None else f" (was {shortened(was)})")
    if len(before.sources) != len(after.sources):
        yield f"{len(before.sources)} → {len(after.sources)} operands"
    else:
        for number, (was, now) in enumerate(zip(before.sources, after.sources, strict=True)):
            if was != now:
                yield f"operand {number} = {shown_source(now)} (was {shown_source(was)})"
    if before.body != after.body:
        yield f"{before.body} → {after.body} operations in its body"
    if before.nodes != after.nodes:
        yield f"now from {quoted(after.nodes)}"


def shortened(value: Attribute | None) -> str:
    """A property for a line."""
    text = "nothing" if value is None else " ".join(str(value).split())
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def shown_source(source: tuple[str, LocationAttr | None, int]) -> str:
    """Where an operand comes from, for a line."""
    name, location, number = source
    nodes = () if location is None else location_names(location)
    return f"{name} of {quoted(nodes)}" if nodes else f"{name} {number}"
