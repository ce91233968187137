"""Functions as graphs of operators, or of instructions and buffers, from which all pictures are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from io import StringIO

from xdsl.dialects.builtin import IntegerAttr, Signedness
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.printer import Printer

from glow_mlir.analysis.cost import bytes_moved
from glow_mlir.analysis.regions import Region, region_covers, region_of, regions_overlap
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.attribute_syntax import print_value
from glow_mlir.dialects.glow_high.base import HighOp, operand_groups
from glow_mlir.dialects.glow_high.blockwise import Blockwise
from glow_mlir.dialects.glow_high.call import CallOp
from glow_mlir.dialects.glow_high.control_flow import RegionOp, YieldOp
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FunctionOp, GetOp, SaveOp, SplatOp
from glow_mlir.dialects.glow_low.base import Instruction, QualifiedOp, Qualifier
from glow_mlir.dialects.glow_low.control_flow import RegionOp as LowRegionOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import DeallocOp, WeightOp, root_of
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import bytes_of, element_of, sizes_of
from glow_mlir.ir.locations import location_names
from glow_mlir.ir.traversal import inner_blocks, own_operations
from glow_mlir.support.dataclass import dataclass

BUFFER, INPUT, OUTPUT = "buffer", "input", "output"
PASSIVE = (BUFFER, INPUT, OUTPUT)
"""Families of nodes other than operators."""

ENTRY = "main"
"""The default entry function."""

HIDDEN = ("operandSegmentSizes",)
"""Properties that are not informative."""

LONGEST = 80
"""The maximum length of a displayed property."""


@dataclass(frozen=True)
class Node:
    """One node: an operator, an instruction, a buffer, an input or an output."""

    kind: str
    """The name of the operator without its dialect; for other nodes, their family."""
    family: str
    """The module that defines the operator; nodes of one family have the same colour."""
    name: str
    """The name in the text of the module; may be empty."""
    origins: tuple[str, ...]
    """The ONNX nodes it comes from."""
    shape: str
    """The types of its results, and the storage type of block-quantized weights."""
    size: int
    """Bytes of its results, or for an instruction of everything it reads and writes."""
    details: tuple[str, ...] = ()
    frame: int | None = None
    """The frame that it is in, by number."""


@dataclass(frozen=True)
class Frame:
    """A frame around nodes: a function, or a region of a branch or loop."""

    label: str
    around: int | None = None
    """The number of the enclosing frame; `None` for functions."""


@dataclass(frozen=True)
class Edge:
    """
    An edge from a node to one that uses it, both by number.

    The label is the shape of the data, and its role in decisions; for an edge from a branch or loop into a region, the
    region's label.
    """

    source: int
    target: int
    label: str


@dataclass
class Graph:
    """Nodes in program order, and edges without cycles."""

    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])
    frames: list[Frame] = field(default_factory=list[Frame])
    """Each after the frame that contains it."""

    def path(self, number: int | None) -> list[str]:
        """The labels of a frame and its enclosing frames, the outermost first."""
        labels: list[str] = []
        while number is not None:
            labels.append(self.frames[number].label)
            number = self.frames[number].around
        return labels[::-1]

    def add(self, node: Node, sources: Iterable[tuple[int, str]] = ()) -> int:
        """Append a node after those it uses; return its number."""
        number = len(self.nodes)
        self.nodes.append(node)
        self.edges += [Edge(source, number, label) for source, label in dict.fromkeys(sources)]
        return number


def shape_text(value: SSAValue) -> str:
    """
    The type of a tensor or buffer for people: `1×64×56×56 f32`, and of 8-bit quantized values `1×64 i8 quantized`.
    """
    element = element_of(value)
    name = f"{stored(element)} quantized" if isinstance(element, UniformQuantizedType) else str(element)
    return f"{'×'.join(map(str, sizes_of(value)))} {name}".strip()


def stored(element: UniformQuantizedType) -> str:
    """The integer type of quantized values, such as `i8` or `u8`."""
    is_unsigned = element.storage.signedness.data == Signedness.UNSIGNED
    return f"{'u' if is_unsigned else 'i'}{element.storage.width.data}"


def quantization_text(value: SSAValue) -> str:
    """The quantization parameters of a tensor or buffer: `scale 0.02, zero point 3`; empty if there are none."""
    element = element_of(value)
    if not isinstance(element, UniformQuantizedType):
        return ""
    scales, points = zip(*element.quantization, strict=True)
    if not element.is_per_axis:
        return f"scale {scales[0]:.6g}, zero point {points[0]}"
    spread = f"zero points {min(points)} to {max(points)}" if any(points) else "zero points 0"
    return f"{len(scales)} scales {min(scales):.6g} to {max(scales):.6g} along axis {element.axis.data}, {spread}"


def quantization_details(values: Iterable[SSAValue]) -> tuple[str, ...]:
    """The quantization parameters of some values, as details of a node."""
    return tuple(f"quantization: {text}" for text in dict.fromkeys(map(quantization_text, values)) if text)


def kind_of(op: Operation | type[Operation]) -> str:
    """The name of an operator without its dialect."""
    return op.name.partition(".")[2]


def definition_of(op: Operation) -> type[Operation]:
    """The operator, or the one behind an instruction."""
    return op.OPERATOR if isinstance(op, DerivedInstruction) else type(op)


def family_of(op: Operation) -> str:
    """The module that defines an operator, or the operator behind an instruction."""
    return definition_of(op).__module__.rpartition(".")[2]


def weights_text(op: IRDLOperation) -> str:
    """The storage type of an operator's block-quantized weights: `int4 weights`; empty if it has none."""
    if not issubclass(definition_of(op), Blockwise):
        return ""
    element = op.properties.get("element")
    return f"int{property_text(op.properties['bits'])} weights" if element is None else f"{element} weights"


def graph_of(functions: Iterable[FunctionOp], storage: Storage) -> Graph:
    """The graph of functions of either dialect, side by side."""
    builder = GraphBuilder(storage)
    for function in functions:
        builder.take_block(function.block, function_label(function), None)
    return builder.graph


def function_label(function: FunctionOp) -> str:
    """The name of a function with its device, or its backend and processor, once these are known."""
    name = f"@{function.sym_name.data}"
    if function.assigned is None:
        return name
    target = function.assigned.data
    where = target.backend if function.device is None else function.device.data
    return f"{name} ({', '.join(filter(None, (where, target.cpu or target.triple)))})"


def region_labels(op: Operation) -> list[str]:
    """The label of each region of a branch or loop: `if then`, `loop body, 3 trips`."""
    if not isinstance(op, IRDLOperation):
        return []
    trips = op.properties.get("trips")
    number = f", {trips.value.data} trips" if isinstance(trips, IntegerAttr) else ""
    names = [name.removesuffix("_region") for name, _ in op.get_irdl_definition().regions]
    return [f"{kind_of(op)} {name}{number}" for name in names]


Content = dict[SSAValue, dict[Region, frozenset[int]]]
"""Allocation or weight → its parts that are written → the nodes of the buffer with each part's present content."""


def copied(content: Content) -> Content:
    """A copy of contents that can be extended."""
    return {root: dict(parts) for root, parts in content.items()}


def joined(contents: Iterable[Content]) -> Content:
    """The union of several contents."""
    found: Content = {}
    for content in contents:
        for root, parts in content.items():
            known = found.setdefault(root, {})
            known.update((part, known.get(part, frozenset()) | nodes) for part, nodes in parts.items())
    return found


@dataclass
class GraphBuilder:
    """Build a graph op by op; constants, and values computed only from them, become details of their readers."""

    storage: Storage
    graph: Graph = field(default_factory=Graph)
    made: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Tensor, allocation or weight → the node with its present content."""
    frames: dict[Block, int] = field(default_factory=dict[Block, int])
    """Block of a function or region → its frame."""
    unread: set[SSAValue] = field(default_factory=set[SSAValue])
    """Buffers not read since they were written: further parts go into the same node."""
    content: Content = field(default_factory=dict[SSAValue, dict[Region, frozenset[int]]])

    def take_block(self, block: Block, label: str, around: int | None) -> None:
        """Add the operations of a block; regions get frames of their own."""
        frame = self.frames[block] = len(self.graph.frames)
        self.graph.frames.append(Frame(label, around))
        for op in own_operations(block):
            self.take(op)
            if blocks := list(inner_blocks(op)):
                self._take_regions(op, blocks, frame)
            if isinstance(op, RegionOp):
                self._yielded(op)

    def _take_regions(self, op: Operation, blocks: Sequence[Block], frame: int) -> None:
        """Add the blocks of a branch or loop, which start from the same state."""
        head, before = len(self.graph.nodes) - 1, self.content
        is_skipped = len(blocks) == 1 and "trips" not in op.properties  # A loop may have no trip at all.
        ends: list[Content] = [before] if is_skipped else []
        labels = [*region_labels(op), *[kind_of(op)] * len(blocks)]  # Variadic regions have one name.
        for label, block in zip(labels, blocks, strict=False):
            first_edge = len(self.graph.edges)
            self.content = copied(before)
            self.take_block(block, label, frame)
            self._entered(head, label, self.frames[block], first_edge)
            ends.append(self.content)
        self.content = joined(ends)

    def take(self, op: Operation) -> None:
        """Add an operation of the function."""
        if isinstance(op, GetOp):
            self._get(op)
        elif isinstance(op, SaveOp):
            self.graph.add(self._storage_node(op.storage_name, OUTPUT, op, op.input), self._sources([op.input]))
        elif isinstance(op, HighOp | BindSymbolOp | CallOp):
            self._operator(op)
        elif isinstance(op, RegionOp):
            self._region(op)
        elif isinstance(op, LowRegionOp):
            self._decision(op)
        elif isinstance(op, Instruction) and not isinstance(op, DeallocOp):
            self._instruction(op)

    def _get(self, op: GetOp) -> None:
        if not isinstance(self.storage.by_name.get(op.storage_name), ConstantOp):
            self.made[op.result] = self.graph.add(self._storage_node(op.storage_name, INPUT, op, op.result))

    def _operator(self, op: HighOp | BindSymbolOp | CallOp) -> None:
        """Add an operator, unless it computes only with constants."""
        sources = self._sources(op.operands)
        if sources or isinstance(op, CallOp) or (not op.operands and not isinstance(op, SplatOp)):
            number = self.graph.add(self._operator_node(op, sum(map(bytes_of, op.results)), op.results), sources)
            self.made.update(dict.fromkeys(op.results, number))

    def _region(self, op: RegionOp) -> None:
        """Add a branch or loop: conditions and carried values flow to it, and from it into its regions."""
        number = self.graph.add(self._operator_node(op, 0, op.results), self._deciding(op))
        self.made.update((argument, number) for block in inner_blocks(op) for argument in block.args)

    def _yielded(self, op: RegionOp) -> None:
        """Add the end of a branch or loop after its regions, whose yielded values flow to it."""
        values = [value for region in op.regions for value in op.yielded(region)]
        node = self._operator_node(op, sum(map(bytes_of, op.results)), op.results)
        number = self.graph.add(replace(node, kind=kind_of(YieldOp), details=()), self._sources(values))
        self.made.update(dict.fromkeys(op.results, number))

    def _decision(self, op: LowRegionOp) -> None:
        """Add a branch or loop over instructions with the buffers that decide; other data flows through buffers."""
        roots = dict.fromkeys(root_of(value) for _, value in op.uses())
        for root in roots:
            self._declare(root)
        self.graph.add(self._operator_node(op, 0, ()), self._deciding(op))
        self.unread.difference_update(roots)

    def _entered(self, head: int, label: str, frame: int, first_edge: int) -> None:
        """Connect a branch or loop to the first node of a region, unless data already flows there."""
        nodes = self.graph.nodes
        if any(edge.source == head and nodes[edge.target].frame == frame for edge in self.graph.edges[first_edge:]):
            return
        inside = range(head + 1, len(nodes))
        first = next((i for i in inside if nodes[i].frame == frame and nodes[i].family not in PASSIVE), None)
        if first is not None:
            self.graph.edges.append(Edge(head, first, label))

    def _deciding(self, op: IRDLOperation) -> list[tuple[int, str]]:
        """The values that a branch or loop itself uses, by role: the condition, the number of trips."""
        groups = [(name.replace("_", " "), value) for name, group in operand_groups(op) for value in group if value]
        return [(number, f"{name}: {text}") for name, value in groups for number, text in self._sources([value])]

    def _instruction(self, op: Instruction) -> None:
        read = [value for qualifier, value in op.uses() if qualifier.reads]
        for value in read:
            self._declare(root_of(value))
        node = self._operator_node(op, bytes_moved(op), op.outputs())
        number = self.graph.add(node, self._sources(read))
        self.unread -= {root_of(value) for value in read}
        for qualifier, value in op.uses():
            root = root_of(value)
            if qualifier not in (Qualifier.OUT, Qualifier.INOUT) or self._is_constant(root):
                continue
            if root not in self.unread:
                self.made[root] = self.graph.add(self._buffer_node(root))
                self.unread.add(root)
            self.graph.edges.append(Edge(number, self.made[root], shape_text(value)))
            written, parts = region_of(value), self.content.get(root, {})
            kept = {region: nodes for region, nodes in parts.items() if not region_covers(written, region)}
            self.content[root] = {**kept, written: frozenset([self.made[root]])}

    def _declare(self, root: SSAValue) -> None:
        """Add a node for a buffer that is read before it is written, such as an input."""
        if root not in self.made and not self._is_constant(root):
            self.made[root] = self.graph.add(self._buffer_node(root))
            self.content[root] = {region_of(root): frozenset([self.made[root]])}

    def _sources(self, values: Iterable[SSAValue]) -> list[tuple[int, str]]:
        return [(number, shape_text(value)) for value in values for number in self._holders(value)]

    def _holders(self, value: SSAValue) -> Iterable[int]:
        """The nodes with the present content of a value; several if parts of a buffer were written separately."""
        root = root_of(value)
        if root not in self.made:
            return ()
        parts = self.content.get(root)
        if parts is None:
            return (self.made[root],)
        read = region_of(value)
        found = (nodes for region, nodes in parts.items() if regions_overlap(read, region))
        return sorted(frozenset[int]().union(*found)) or (self.made[root],)

    def _is_constant(self, root: SSAValue) -> bool:
        owner = root.owner
        name = owner.storage_name if isinstance(owner, GetOp | WeightOp) else ""
        return isinstance(self.storage.by_name.get(name), ConstantOp)

    def _storage_node(self, name: str, family: str, op: Operation, value: SSAValue) -> Node:
        shape, size = shape_text(value), bytes_of(value)
        details = quantization_details([value])
        return Node(family, family, name, location_names(op.location), shape, size, details, self._frame(op))

    def _buffer_node(self, root: SSAValue) -> Node:
        owner = root.owner
        assert isinstance(owner, Operation)
        shape, size, origins = shape_text(root), bytes_of(root), location_names(owner.location)
        if isinstance(owner, WeightOp):
            family = INPUT if owner.mutable is None else OUTPUT
            details = quantization_details([root])
            return Node(family, family, owner.storage_name, origins, shape, size, details, self._frame(owner))
        offset = owner.properties.get("offset")
        details = quantization_details([root])
        if isinstance(offset, IntegerAttr):
            details += (f"offset: {offset.value.data}",)
        return Node(BUFFER, BUFFER, root.name_hint or "", origins, shape, size, details, self._frame(owner))

    def _operator_node(self, op: IRDLOperation, size: int, results: Iterable[SSAValue]) -> Node:
        values = list(results)
        name = next((value.name_hint for value in values if value.name_hint), "")
        shape = ", ".join(filter(None, (*map(shape_text, values), weights_text(op))))
        details = (*quantization_details(values), *self._details(op))
        return Node(
            kind_of(op), family_of(op), name, location_names(op.location), shape, size, details, self._frame(op)
        )

    def _frame(self, op: Operation) -> int | None:
        """The frame that an operation is in."""
        block = op.parent_block()
        return None if block is None else self.frames.get(block)

    def _details(self, op: IRDLOperation) -> Iterable[str]:
        qualifiers: Mapping[str, Qualifier] = op.QUALIFIERS if isinstance(op, QualifiedOp) else {}
        for label, group in operand_groups(op):
            for value in filter(None, group):
                if root_of(value) not in self.made and qualifiers.get(label, Qualifier.IN) is Qualifier.IN:
                    parameters = quantization_text(value)
                    yield f"{label}: constant {shape_text(value)}{f' ({parameters})' if parameters else ''}"
                elif qualifiers.get(label) is Qualifier.SCRATCH:
                    yield f"{label}: scratch {shape_text(value)}"
        for label, attribute in sorted(op.properties.items()):
            text = property_text(attribute)
            if label not in HIDDEN and len(text) <= LONGEST:
                yield f"{label}: {text}"


def property_text(attribute: Attribute) -> str:
    """The value of a property in the syntax of the module's text."""
    stream = StringIO()
    print_value(Printer(stream), attribute)
    return stream.getvalue()
