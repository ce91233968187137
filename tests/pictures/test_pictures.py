"""Graphs, layouts and pages say what is in the module, and are legal as what they are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import onnx
import pytest
from models import bert_encoder, model_named
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.memory import DeallocOp
from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import parse_module
from glow_mlir.pictures.colours import COLOURS, meaning_of
from glow_mlir.pictures.dot import dot
from glow_mlir.pictures.graph import BUFFER, INPUT, OUTPUT, Edge, Graph, Node, graph_of
from glow_mlir.pictures.layout import BEND_GAP, NODE_GAP, STRAIGHT, layered
from glow_mlir.pictures.memory import Memory, memory_of
from glow_mlir.pictures.page import Page, Shown

MODELS = {"bert": lambda: bert_encoder(layers=2, length=8), "squeezenet": lambda: model_named("squeezenet")}


class Compiled:
    """What the pictures of one model are drawn from."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graphs: dict[str, Graph] = {}
        self.memory: Memory | None = None
        self.log = CompilationLog()
        module = import_model(model)
        Compilation(module, runner=PassRunner(observers=[self.log]), observers=[self.observe]).run("allocated")
        self.module = module

    def observe(self, stage: Stage, module: ModuleOp, seconds: float) -> None:
        self.graphs[stage.name] = graph_of(functions(module), Storage(module))
        self.memory = memory_of(module)


@pytest.fixture(scope="module", params=MODELS)
def compiled(request: pytest.FixtureRequest) -> Compiled:
    return Compiled(MODELS[request.param]())


def test_graphs_lead_from_inputs_to_outputs(compiled: Compiled) -> None:
    for graph in compiled.graphs.values():
        sources = {edge.target for edge in graph.edges}
        used = {edge.source for edge in graph.edges}
        for number, node in enumerate(graph.nodes):
            if number not in sources:
                has_constants = node.kind in ("fill", "splat") or any("constant" in detail for detail in node.details)
                assert node.family == INPUT or has_constants, node
            assert node.family != INPUT or number not in sources, node
            assert node.family != OUTPUT or number not in used, node


def test_instructions_and_buffers_alternate(compiled: Compiled) -> None:
    graph = compiled.graphs["allocated"]
    passive = {BUFFER, INPUT, OUTPUT}
    for edge in graph.edges:
        assert (graph.nodes[edge.source].family in passive) is not (graph.nodes[edge.target].family in passive)
    block = functions(compiled.module)[0].block
    instructions = [op for op in block.ops if isinstance(op, Instruction) and not isinstance(op, DeallocOp)]
    assert sum(node.family not in passive for node in graph.nodes) == len(instructions)


def test_layout_keeps_order_and_distance(compiled: Compiled) -> None:
    for graph in compiled.graphs.values():
        layout = layered(graph)
        rows: dict[int, list[float]] = {}
        for column, layer in layout.positions:
            rows.setdefault(layer, []).append(column)
        for row in rows.values():
            assert all(right - left >= NODE_GAP - 0.02 for left, right in pairwise(sorted(row)))
            assert min(row) >= 0
        for edge, bends in zip(graph.edges, layout.bends, strict=True):
            passed = [(column, layer) for column, first, last in bends for layer in range(first, last + 1)]
            path = [layout.positions[edge.source][1], *(layer for _, layer in passed), layout.positions[edge.target][1]]
            assert path == list(range(path[0], path[-1] + 1))
            assert len(path) > 1
            for column, layer in passed:
                nearest = min((abs(column - other) for other in rows.get(layer, ())), default=NODE_GAP)
                assert nearest >= (NODE_GAP + BEND_GAP) / 2 - STRAIGHT - 0.02


def test_layout_of_nothing_and_of_one() -> None:
    assert layered(Graph()).positions == ()
    node = Node("relu", "activations", "", (), "", 0)
    assert layered(Graph([node], [])).positions == ((0.0, 0),)


def test_source_stands_above_its_first_use() -> None:
    node = Node("relu", "activations", "", (), "", 0)
    graph = Graph([node] * 4, [Edge(0, 1, ""), Edge(1, 2, ""), Edge(3, 2, "")])
    assert [layer for _, layer in layered(graph).positions] == [0, 1, 2, 1]


def test_edges_of_one_node_share_their_way() -> None:
    node, count = Node("relu", "activations", "", (), "", 0), 1000
    following = [Edge(number, number + 1, "") for number in range(count)]
    distant = [Edge(0, number, "") for number in range(10, count, 10)]
    layout = layered(Graph([node] * (count + 1), [*following, *distant]))
    assert sum(map(len, layout.bends)) < 8 * len(distant) * len(distant)
    ways = [bends for bends in layout.bends if bends]
    assert all(len({column for column, first, _ in ways[-1] if first <= bends[0][1]}) == 1 for bends in ways)
    assert max(column for column, _ in layout.positions) < 4


def test_what_stands_beside_does_not_push_the_rest() -> None:
    node, count = Node("relu", "activations", "", (), "", 0), 40
    following = [Edge(number, number + 1, "") for number in range(count)]
    beside = [Edge(count + number, 2 * number, "") for number in range(1, count // 2)]
    skipping = [Edge(number, number + 3, "") for number in range(0, count - 3, 5)]
    layout = layered(Graph([node] * (count + count // 2), [*following, *beside, *skipping]))
    line = [column for column, _ in layout.positions[: count + 1]]
    assert max(line) - min(line) < 0.5


PARTS = """
glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<4x2xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<2x2xf32>
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<4x2xf32>
  %a = glow_low.alloc {offset = 0} : memref<4x2xf32>
  %b = glow_low.alloc {offset = 32} : memref<2x2xf32>
  %u = glow_low.view %a : memref<4x2xf32> to memref<2x2xf32>
  %v = glow_low.view %a : memref<4x2xf32> to memref<2x2xf32, strided<[2, 1], offset: 4>>
  glow_low.relu @out %u, @in %x
  glow_low.neg @out %b, @in %u
  glow_low.sqrt @out %v, @in %b
  glow_low.copy @out %y, @in %a
  glow_low.sin @out %u, @in %b
  glow_low.exp @out %b, @in %u
  glow_low.dealloc @out %b
  glow_low.dealloc @out %a
}
"""


def test_parts_of_a_buffer_flow_to_what_reads_them() -> None:
    module = parse_module(PARTS, new_context())
    graph = graph_of(functions(module), Storage(module))

    def writers(reader: str) -> set[str]:
        buffers = {edge.source for edge in graph.edges if graph.nodes[edge.target].kind == reader}
        return {graph.nodes[edge.source].kind for edge in graph.edges if edge.target in buffers}

    assert writers("neg") == {"relu"}
    assert writers("copy") == {"relu", "sqrt"}
    assert writers("exp") == {"sin"}


def test_what_is_called_a_constant_is_one(compiled: Compiled) -> None:
    for stage, graph in compiled.graphs.items():
        flowing: dict[int, int] = dict.fromkeys(range(len(graph.nodes)), 0)
        for edge in graph.edges:
            flowing[edge.target] += 1
        gathers = [(number, node) for number, node in enumerate(graph.nodes) if node.kind == "gather"]
        for number, node in gathers:
            constants = [detail for detail in node.details if "constant" in detail]
            maps = "".join(detail for detail in node.details if detail.startswith("epilogue_maps"))
            operands = 2 + maps.count("affine_map<")  # data and indices, and a map for each source of the epilogue
            assert len(constants) + flowing[number] == operands, (stage, node)


def test_rectangles_do_not_overlap(compiled: Compiled) -> None:
    memory = compiled.memory
    assert memory is not None
    assert 0 < memory.bound <= memory.size
    for index, one in enumerate(memory.buffers):
        assert 0 <= one.begin < one.end <= len(memory.steps)
        assert one.offset + one.size <= memory.size
        for view in one.views:
            assert 0 <= view.offset <= view.offset + view.size <= one.size
        for other in memory.buffers[:index]:
            apart = one.end <= other.begin or other.end <= one.begin
            assert apart or one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
    live = [sum(b.size for b in memory.buffers if b.begin <= step < b.end) for step in range(len(memory.steps))]
    assert live[memory.peak] == max(live)


def test_no_memory_before_allocation() -> None:
    module = import_model(bert_encoder(layers=1, length=8))
    Compilation(module).run("selected")
    assert memory_of(module) is None


STATEMENT = re.compile(
    r'digraph "(\\.|[^"\\])*" \{|(sub)?graph ("(\\.|[^"\\])*" \{|\[.*\];)|(node|edge) \[.*\];|\}|label=.*;|'
    r'n\d+ (-> n\d+ )?\[(\w+=("(\\.|[^"\\])*"|\w+)(, )?)+\];'
)


def test_dot_is_legal(compiled: Compiled) -> None:
    for stage, graph in compiled.graphs.items():
        lines = dot(graph, stage).splitlines()
        for line in lines:
            assert STATEMENT.fullmatch(line.strip()), line
        assert sum(line.endswith("{") for line in lines) == sum(line.strip() == "}" for line in lines)
        assert sum(re.match(r"  n\d+ -> ", line) is not None for line in lines) == len(graph.edges)


def test_dot_has_the_colours_of_the_page(compiled: Compiled) -> None:
    for stage, graph in compiled.graphs.items():
        fills = re.findall(r'n(\d+) \[label=.*fillcolor="(#\w+)"', dot(graph, stage))
        assert len(fills) == len(graph.nodes)
        for number, fill in fills:
            assert fill == COLOURS[meaning_of(graph.nodes[int(number)].family)]


def test_dot_quotes_names() -> None:
    graph = Graph([Node("relu", "f", 'a"b\\', ('x"y', "</script>"), "4 f32", 16)], [])
    (line,) = (line.strip() for line in dot(graph, 'q"').splitlines() if line.strip().startswith("n0"))
    assert STATEMENT.fullmatch(line)
    assert r"relu a\"b\\\n4 f32\n16 B" in line


class Reader(HTMLParser):
    """Collects the data of a page, and every place from which it would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.data = ""
        self.is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loads += [f"{tag} {name}" for name in ("src", "href", "srcset", "action") if name in given]
        self.is_data = given.get("id") == "data"
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.is_data = False

    def handle_data(self, data: str) -> None:
        if self.is_data:
            self.data += data


def read_page(page: str) -> dict[str, Any]:
    """The data of a page that is complete in itself."""
    reader = Reader()
    reader.feed(page)
    assert not reader.loads
    assert not reader.open
    assert "{{" not in page.replace(reader.data, "")
    assert not re.findall(r"url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg)", page.replace(reader.data, ""))
    return json.loads(reader.data)


def test_page_has_all_parts(compiled: Compiled) -> None:
    chosen = {stage: compiled.graphs[stage] for stage in ("imported", "optimized")}
    page = Page("a <model> & {{DATA}}", [Shown("", compiled.memory, chosen, compiled.log)]).html()
    assert "<title>a &lt;model&gt; &amp; {{DATA}}</title>" in page
    (data,) = read_page(page.replace("{{DATA}}", ""))["compilations"]
    assert list(data["graphs"]) == ["imported", "optimized"]
    assert compiled.memory is not None
    assert len(data["memory"]["buffers"]) == len(compiled.memory.buffers)
    nodes = {origin for node in data["graphs"]["imported"]["nodes"] for origin in node[3]}
    assert nodes <= set(data["log"]["nodes"])
    for node, entries in data["log"]["nodes"].items():
        wanted = [(entry.pass_name, entry.text()) for entry in compiled.log.nodes[node]]
        assert [(data["log"]["passes"][run], data["log"]["texts"][text]) for run, text in entries] == wanted


def test_page_without_parts_is_legal() -> None:
    (data,) = read_page(Page("nothing", [Shown()]).html())["compilations"]
    assert data == {
        "label": "",
        "memory": None,
        "graphs": {},
        "log": {"passes": [""], "texts": [], "nodes": {}},
        "passes": {},
        "names": {},
    }


def test_names_cannot_end_the_script() -> None:
    graph = Graph([Node("relu", "f", "</script><b>", ("</script>",), "<!--", 16)], [])
    data = read_page(Page("page", [Shown("", None, {"imported": graph})]).html())["compilations"][0]
    assert data["graphs"]["imported"]["nodes"][0][2] == "</script><b>"


VIEWS = """
glow_high.placeholder @x : tensor<2x2xf32> {input}
glow_high.placeholder @y : tensor<4x2xf32> {output}
glow_low.func @main(@x, @y) {
  %x = glow_low.weight @x {region = "bindings", offset = 0} : memref<2x2xf32>
  %y = glow_low.weight @y {mutable, region = "bindings", offset = 1} : memref<4x2xf32>
  %a = glow_low.alloc {offset = 0} : memref<4x2xf32>
  %u = glow_low.view %a : memref<4x2xf32> to memref<2x2xf32>
  %v = glow_low.view %a : memref<4x2xf32> to memref<2x2xf32, strided<[2, 1], offset: 4>>
  glow_low.relu @out %u, @in %x loc("first")
  glow_low.neg @out %v, @in %x loc("second")
  glow_low.copy @out %y, @in %a loc("last")
  glow_low.dealloc @out %a
}
"""


def test_views_are_parts_of_their_buffer() -> None:
    from xdsl.dialects.builtin import IntegerAttr, i64

    module = parse_module(VIEWS, new_context())
    functions(module)[0].properties["activations"] = IntegerAttr(64, i64)
    memory = memory_of(module)
    assert memory is not None
    (buffer,) = memory.buffers
    assert (buffer.kind, buffer.begin, buffer.end, buffer.size) == ("relu", 0, 3, 32)
    assert [(view.name, view.offset, view.size) for view in buffer.views] == [("u", 0, 16), ("v", 16, 16)]
    assert [(step.kind, step.moved, step.origins) for step in memory.steps] == [
        ("relu", 32, ("first",)),
        ("neg", 32, ("second",)),
        ("copy", 64, ("last",)),
    ]
    graph = graph_of(functions(module), Storage(module))
    kinds = [graph.nodes[edge.target].kind for edge in graph.edges if graph.nodes[edge.source].kind in ("relu", "neg")]
    assert kinds == ["buffer", "buffer"]
    assert sum(node.kind == "buffer" for node in graph.nodes) == 1


SELECTION = """
glow_high.func @f(%x: tensor<6xf32>) -> FOUND {
  %places, %count = glow_high.non_zero %x : tensor<1x6xi64>, tensor<i64>
  glow_high.bind_symbol %count {symbol = #glow.sizes<[found], found = 0 to 6>}
  %0 = glow_high.slice %places {starts = [0, 0], ends = #glow.sizes<[1, found], found = 0 to 6>} : FOUND
  glow_high.return %0
}
""".replace("FOUND", "tensor<1x?xi64, #glow.sizes<[found], found = 0 to 6>>")


def test_sizes_that_data_decides_are_drawn_as_symbols() -> None:
    observed = dict[str, Graph]()
    module = parse_module(SELECTION, new_context())

    def observe(stage: Stage, module: ModuleOp, seconds: float) -> None:
        observed[stage.name] = graph_of(functions(module), Storage(module))

    Compilation(module, observers=[observe]).run("allocated")
    for graph in observed.values():
        assert any(node.kind == "bind_symbol" for node in graph.nodes)
        assert any(node.shape == "1×found i64" for node in graph.nodes)
    memory = memory_of(module)
    assert memory is not None
    assert memory.size > 0
