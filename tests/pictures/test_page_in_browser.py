"""The page in a real browser: everything is on screen, legible and reachable by keys, on a desktop and on a phone."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from browser import MISSING, browser_program, browsing
from models import bert_encoder, model_named
from onnx import helper, numpy_helper
from onnx_models import model_of, value
from vision_models import quantized_classifier

from glow_mlir.driver.compilation_log import CompilationLog
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_counts import PassCount, PassCounts
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import Stage
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.rewriting import functions
from glow_mlir.pictures.graph import PASSIVE, Edge, Graph, Node, graph_of
from glow_mlir.pictures.memory import Buffer, DrawnStep, Memory, memory_of
from glow_mlir.pictures.page import Page, Row, Shown, StepTime

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab
    from xdsl.dialects.builtin import ModuleOp

pytestmark = [pytest.mark.extra, pytest.mark.skipif(browser_program() is None, reason=MISSING)]

MODELS = {
    "bert": lambda: bert_encoder(layers=1, length=8),
    "squeezenet": lambda: model_named("squeezenet"),
    "quantized": lambda: quantized_classifier().model,
}
STAGES = ("imported", "allocated")
DESKTOP, PHONE = (1600, 1000), (390, 844)

REFERENCES = Path(__file__).parent / "references"
DRAW = "GLOW_DRAW_REFERENCES"
"""A variable of the environment: where it is set, the references are drawn anew."""
SMALL = (200, 125)
MAX_DIFFERENCE = 6.0
"""Of 255, on average over the pixels of a small grey picture: fonts differ between machines, places do not."""

HELPERS = """
const rect = (element) => element.getBoundingClientRect();
const inside = (one, other) => one.left >= other.left - 1 && one.right <= other.right + 1
    && one.top >= other.top - 1 && one.bottom <= other.bottom + 1;
const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 1 && other.top < one.bottom - 1;
const boxes = () => [...document.querySelectorAll("#canvas .box")];
"""


TARGET = "avx2"
"""The machine that is compiled for: pictures are to look the same on every one."""


def shown(model: onnx.ModelProto) -> Shown:
    """What a page shows of a model; the times are made up, one for each instruction."""
    graphs: dict[str, Graph] = {}
    memories: list[Memory | None] = []
    passes: dict[str, list[PassCount]] = {}

    def observe(stage: Stage, module: ModuleOp, seconds: float) -> None:
        from glow_mlir.constants.storage import Storage

        passes[stage.name] = counts.runs[sum(map(len, passes.values())) :]
        if stage.name in STAGES:
            graphs[stage.name] = graph_of(functions(module), Storage(module))
            memories.append(memory_of(module))

    log, counts = CompilationLog(), PassCounts()
    runner = PassRunner(observers=[counts, log])
    Compilation(import_model(model), target=TARGET, runner=runner, observers=[observe]).run("allocated")
    steps = [node.kind for node in graphs["allocated"].nodes if node.family not in PASSIVE]
    times = [StepTime(kind, 1.5 + number, 1.25 + number) for number, kind in enumerate(steps)]
    return Shown("", memories[-1], graphs, log, passes, times)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    for name, model in MODELS.items():
        (folder / f"{name}.html").write_text(Page(name, [shown(model())]).html())
    return {name: (folder / f"{name}.html").as_uri() for name in MODELS}


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    with browser.new_context(has_touch=True) as context:
        found = context.new_page()
        problems: list[str] = []
        found.on("pageerror", lambda error: problems.append(str(error)))
        found.on("request", lambda request: problems.append(request.url) if request.url[:5] != "file:" else None)
        found.set_default_timeout(5000)
        yield found
        assert problems == []


def visit(tab: Tab, address: str, size: tuple[int, int] = DESKTOP) -> None:
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    tab.goto("about:blank")
    tab.goto(address)


def ask(tab: Tab, body: str) -> Any:
    """What a piece of script returns."""
    return tab.evaluate(f"() => {{ {HELPERS} {body} }}")


@pytest.mark.parametrize(("name", "size"), [*((name, DESKTOP) for name in MODELS), ("bert", PHONE)])
def test_fit_shows_everything(tab: Tab, pages: dict[str, str], name: str, size: tuple[int, int]) -> None:
    for stage in ("memory", *STAGES):
        visit(tab, f"{pages[name]}#{stage}", size)
        begun = ask(tab, "return canvas.getAttribute('viewBox')")
        tab.click("#fit")
        assert ask(tab, "return boxes().length") != 0
        assert ask(tab, "return boxes().filter((box) => !inside(rect(box), rect(canvas))).length") == 0, stage
        if stage != "memory":
            assert ask(tab, "return canvas.getAttribute('viewBox')") != begun, "it opens where it can be read"
            assert ask(tab, "return !byId('map').hasAttribute('hidden') && rect(byId('map')).width > 0")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_panels_cover_nothing_and_fit_the_width(tab: Tab, pages: dict[str, str], size: tuple[int, int]) -> None:
    visit(tab, f"{pages['quantized']}#allocated", size)
    panels = "['header', '#canvas', '#map', '#legend', 'aside'].map((name) => rect(document.querySelector(name)))"
    assert ask(
        tab, f"const all = {panels}; return all.some((one, i) => all.some((b, j) => i < j && meet(one, b)))"
    ) is (False)
    assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")
    assert ask(tab, "return [...byId('legend').children].every((entry) => inside(rect(entry), rect(byId('legend'))))")


@pytest.mark.parametrize("name", MODELS)
def test_text_is_inside_its_box_and_large_enough(tab: Tab, pages: dict[str, str], name: str) -> None:
    for stage in STAGES:
        visit(tab, f"{pages[name]}#{stage}")
        assert ask(tab, "return canvas.getScreenCTM().a * 11 >= 8")
        outside = """
            return [...document.querySelectorAll('#canvas .node')].flatMap((node) => [...node.querySelectorAll('text')]
                .filter((text) => !inside(rect(text), rect(node.querySelector('.box'))))
                .map((text) => text.textContent))
        """
        assert ask(tab, outside) == []


def test_edges_go_around_boxes(tab: Tab, pages: dict[str, str]) -> None:
    crossed = """
        const found = [];
        for (const edge of edges) {
            const length = edge.path.getTotalLength(), ends = [edge.source, edge.target];
            const points = Array.from({ length: 60 }, (_, i) => edge.path.getPointAtLength((length * i) / 59));
            for (const item of items) {
                if (ends.includes(item)) continue;
                const { x, y, width, height } = item.shape.getBBox();
                const isIn = (p) => p.x > x && p.x < x + width && p.y > y && p.y < y + height;
                if (points.some(isIn)) found.push(item.label);
            }
        }
        return found;
    """
    for name in MODELS:
        for stage in STAGES:
            visit(tab, f"{pages[name]}#{stage}")
            assert ask(tab, "return edges.length") != 0
            assert ask(tab, crossed) == [], (name, stage)


def test_boxes_carry_names_times_and_codes(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['quantized']}#imported")
    origins = ask(
        tab, "return shown.graphs.imported.nodes.filter((node) => node[3].length === 1).map((node) => node[3][0])"
    )
    texts = ask(tab, "return [...document.querySelectorAll('#canvas text.name')].map((text) => text.textContent)")
    assert set(origins) - set(texts) <= {name for name in origins if len(name) > 20}
    visit(tab, f"{pages['quantized']}#allocated")
    assert ask(tab, "return document.querySelectorAll('#canvas text.time').length") == ask(
        tab, "return shown.graphs.allocated.nodes.filter((node) => node[9] !== null).length"
    )
    assert tab.locator("#canvas text.time").first.text_content() == "1.50 µs"
    facts = ask(
        tab, "return items.flatMap((item) => item.facts).filter(([n]) => n === 'quantization').map((f) => f[1])"
    )
    assert any("scale" in fact and "zero point" in fact for fact in facts)


def test_axes_have_round_ticks_in_one_unit(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['bert']}#memory")
    ticked = "(most, about, units) => ticks(most, about, units).map(([, text]) => text)"
    assert ask(tab, f"return ({ticked})(14592, 8, BYTES)") == [f"{number} KiB" for number in range(0, 15, 2)]
    assert ask(tab, f"return ({ticked})(320, 4, BYTES)") == ["0 B", "100 B", "200 B", "300 B"]
    assert ask(tab, f"return ({ticked})(1.82, 6, TIMES)") == ["0 µs", "0.5 µs", "1.0 µs", "1.5 µs"]
    assert ask(tab, f"return ({ticked})(26000, 3, TIMES)") == ["0 ms", "10 ms", "20 ms"]
    assert ask(tab, f"return ({ticked})(3, 20, COUNTS)") == ["0", "1", "2", "3"]
    assert ask(tab, f"return ({ticked})(0, 5, BYTES)") == ["0 B"]
    texts = tab.locator("#canvas text.axis").all_text_contents()
    assert {text.split()[1] for text in texts if " " in text} == {"KiB"}
    assert all(float(text.split()[0]) >= 0 for text in texts if text[0].isdigit())


def test_axis_is_of_instructions_or_of_time(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['bert']}#memory")
    times: list[float] = ask(tab, "return shown.memory.steps.map((step) => step[5])")
    begins: list[int] = ask(tab, "return shown.memory.buffers.map((buffer) => buffer[7])")
    by_number = [begin / len(times) for begin in begins]
    by_time = [sum(times[:begin]) / sum(times) for begin in begins]
    for title, places in (("instruction", by_number), ("measured time", by_time)):
        assert title in tab.locator("#canvas text.axis").all_text_contents()
        wide = ask(tab, "return canvas.clientWidth - ASIDE.left - ASIDE.right")
        lefts = ask(tab, "return boxes().map((box) => box.getBBox().x)")
        assert lefts == [pytest.approx(place * wide, abs=0.1) for place in places]
        tab.click("#axis")
    assert tab.get_attribute("#axis", "aria-pressed") == "false"
    visit(tab, f"{pages['bert']}#imported")
    assert not tab.is_visible("#axis")


def test_a_loop_is_as_long_as_it_was_measured(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['bert']}#memory")
    steps = "[[0, 2], [0, 6], [1, null], [2, null], [0, 1]].map(([depth, time]) => [,,,,, time, depth])"
    assert ask(tab, f"return beginnings({steps})") == [0, 2, 4, 6, 8, 9]
    assert ask(tab, f"return between(beginnings({steps}), 1.5)") == 3


def test_tables_are_sorted_by_the_share_of_the_total(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['bert']}#memory")
    column = "(name, at) => [...document.querySelectorAll(`${name} tbody tr`)].map((row) => row.cells[at].textContent)"
    for table, at in (("#facts", 3), ("#table", 3)):
        shares = [float(text.removesuffix(" %")) for text in ask(tab, f"return ({column})('{table}', {at})")]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(100, abs=0.05 * len(shares))
    broken = "[...document.querySelectorAll('aside td.number')].filter((cell) => cell.querySelector('wbr'))"
    assert ask(tab, f"return {broken}.length") == 0, "numbers stay with their units"
    assert tab.get_attribute("#table th:nth-child(3)", "aria-sort") == "descending"
    tab.click("#table th:first-child button")
    numbers = [int(text) for text in ask(tab, f"return ({column})('#table', 0)")]
    assert numbers == list(range(len(numbers)))
    tab.click("#table th:first-child button")
    assert ask(tab, f"return ({column})('#table', 0)")[0] == str(len(numbers) - 1)
    tab.locator("#table tbody tr").nth(3).click()
    assert ask(tab, "return document.querySelectorAll('#table tr.chosen').length") != 0


def test_passes_stand_beside_the_graph(tab: Tab, pages: dict[str, str]) -> None:
    for stage in STAGES[1:]:
        visit(tab, f"{pages['bert']}#{stage}")
        names = tab.locator("#table tbody tr td:nth-child(2)").all_text_contents()
        assert len(names) == ask(tab, f"return passesTo('{stage}').length") > 30
        sizes = tab.locator("#table tbody tr td:nth-child(3)").all_text_contents()
        row = next(number for number, name in enumerate(names) if "1 × fold-" in name and "→" in sizes[number])
        tab.locator("#table tbody tr").nth(row).click()
        assert str(tab.text_content("#chosen h2")).split()[-1] in names[row]
        touched = ask(tab, "return items.filter((item) => item.shape.classList.contains('same')).length")
        assert 0 < touched < ask(tab, "return items.length")
    visit(tab, f"{pages['bert']}#allocated", PHONE)
    assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")


def test_legend_has_the_lines(tab: Tab, pages: dict[str, str]) -> None:
    for stage, lines in (("memory", {"mark"}), ("imported", set[str]()), ("allocated", {"hot"})):
        visit(tab, f"{pages['bert']}#{stage}")
        drawn = ask(tab, "return ['mark', 'view', 'hot'].filter((name) => document.querySelector(`#canvas .${name}`))")
        told = ask(tab, "return [...document.querySelectorAll('#legend i.line')].map((line) => line.classList[1])")
        assert told == drawn
        assert lines <= set(told)


@pytest.mark.parametrize(("least", "is_disturbed"), [(9.0, False), (4.0, True)])
def test_disturbed_measurements_are_told(tab: Tab, tmp_path: Path, least: float, is_disturbed: bool) -> None:
    memory = Memory("@main", 16, 16, 0, 0, (), (DrawnStep("matmul", "linear", "matmul", 16, ("n",)),))
    file = tmp_path / "times.html"
    file.write_text(Page("times", [Shown("", memory, times=[StepTime("matmul", 10.0, least)])]).html())
    visit(tab, file.as_uri())
    warnings = tab.locator(".warning").all_text_contents()
    assert [text.startswith("Disturbed: the medians are 2.5 times") for text in warnings] == [True] * is_disturbed


def test_names_are_cut_in_whole_parts(tab: Tab, tmp_path: Path) -> None:
    names = [
        f"/model/encoder/layer.{layer}/attention/self/{part}/MatMul" for layer in range(2) for part in ("query", "key")
    ]
    nodes = [Node("matmul", "linear", "x", (name,), "2 f32", 16) for name in names]
    file = tmp_path / "names.html"
    file.write_text(Page("names", [Shown("", None, {"imported": Graph(nodes)})]).html())
    visit(tab, file.as_uri())
    texts = tab.locator("#canvas text.name").all_text_contents()
    assert len(set(texts)) == len(names)
    assert texts[:2] == ["layer.0/…/self/query/MatMul", "layer.0/…/self/key/MatMul"]
    assert ask(tab, "return items.map((item) => item.facts[0][1])") == names, "the panel has the whole names"
    assert ask(tab, "return fitting('some/long/hierarchy/of/parts', 90, '400', true)").startswith("…/")


def test_search_moves_the_view(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['squeezenet']}#imported")
    tab.keyboard.press("/")
    tab.keyboard.type("softmax")
    count = ask(tab, "return hits.length")
    assert count != 0
    assert tab.text_content("#found") == f"{count} found"
    tab.keyboard.press("Enter")
    assert tab.text_content("#found") == f"1 of {count}"
    assert ask(tab, "return inside(rect(chosen.shape), rect(canvas)) && chosen.words.includes('softmax')")
    tab.fill("#search", "conv")
    for number in (1, 2):
        tab.click("#next")
        assert str(tab.text_content("#found")).startswith(f"{number} of ")
    tab.click("#previous")
    assert str(tab.text_content("#found")).startswith("1 of ")
    tab.keyboard.press("Escape")
    assert ask(tab, "return byId('search').value === '' && chosen === null && document.activeElement === canvas")


def test_keys_move_and_zoom(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['squeezenet']}#imported")
    top = ask(tab, "return covered()")
    tab.keyboard.press("ArrowDown")
    lower = ask(tab, "return covered()")
    tab.keyboard.press("+")
    nearer = ask(tab, "return covered()")
    assert lower["y"] > top["y"]
    assert nearer["width"] < lower["width"]
    tab.keyboard.press("f")
    assert ask(tab, "return boxes().every((box) => inside(rect(box), rect(canvas)))")
    stops: list[object] = []
    for _ in range(4):
        tab.keyboard.press("Tab")
        stops.append(ask(tab, "return document.activeElement.id || document.activeElement.textContent"))
        assert ask(tab, "return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert stops == ["imported", "search", "previous", "next"]


def test_fingers_zoom(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, f"{pages['squeezenet']}#imported", PHONE)
    width = ask(tab, "return covered().width")
    ask(
        tab,
        """
        const send = (type, id, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
            pointerId: id, clientX: x, clientY: y, pointerType: "touch", bubbles: true }));
        send("pointerdown", 1, 150, 400); send("pointerdown", 2, 250, 400);
        send("pointermove", 1, 100, 400); send("pointermove", 2, 300, 400);
        send("pointerup", 1, 100, 400); send("pointerup", 2, 300, 400);
        """,
    )
    assert ask(tab, "return covered().width") == pytest.approx(width / 2)


HOSTILE = (
    "</script><script>document.title = 'taken'</script>",
    "\"quoted' & <b>bold</b> <!-- {{DATA}}",
    "n\u00e4m\u00e9-\u6f22\u5b57-\U0001f642 \u2028\u2029 \x01",
    "long" * 2500,
)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_names_are_text_and_nothing_else(tab: Tab, tmp_path: Path, size: tuple[int, int]) -> None:
    inputs = ["x", *HOSTILE[:-1]]
    nodes = [
        helper.make_node("MatMul", [source, "w"], [name], f"node {name}")
        for source, name in zip(inputs, HOSTILE, strict=True)
    ]
    file, weight = tmp_path / "hostile.html", numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    found = shown(model_of(nodes, [value("x", shape=(2, 4))], [HOSTILE[-1]], [weight]))
    file.write_text(Page(HOSTILE[0], [found]).html(), encoding="utf-8")
    for stage in ("memory", *STAGES):
        visit(tab, f"{file.as_uri()}#{stage}", size)
        assert tab.title() == HOSTILE[0]
        assert ask(tab, "return document.scripts.length") == 2
        assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")
    visit(tab, f"{file.as_uri()}#imported", size)
    names = ask(tab, "return items.flatMap((item) => item.origins)")
    assert {f"node {name}" for name in HOSTILE} <= set(names)
    tab.fill("#search", "longlong")
    tab.keyboard.press("Enter")
    assert ask(tab, "return chosen.origins[0].length") == len("node ") + len(HOSTILE[-1])
    assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("count", [0, 1, 60], ids=["no node", "one node", "60 apart"])
def test_odd_graphs_are_drawn(tab: Tab, tmp_path: Path, count: int) -> None:
    node = Node("relu", "activations", "x", ("n",), "2 f32", 16)
    memory = Memory("@main", 0, 0, 0, 0, (), ())
    file = tmp_path / "odd.html"
    file.write_text(Page("odd", [Shown("", memory, {"imported": Graph([node] * count)})]).html())
    visit(tab, f"{file.as_uri()}#memory")
    assert tab.locator("#canvas text.note").all_text_contents() == ["the arena is empty"]
    visit(tab, f"{file.as_uri()}#imported")
    assert ask(tab, "return boxes().length") == count
    if count:
        assert ask(tab, "return rect(boxes()[0]).width <= 320 && inside(rect(boxes()[0]), rect(canvas))")
        assert ask(tab, "return rect(boxes()[0]).left - rect(canvas).left < 50") is (count > 1), "room is used"
    tab.click("#fit")
    assert ask(tab, "return boxes().every((box) => inside(rect(box), rect(canvas)))")


def test_a_graph_of_5000_nodes_is_drawn(tab: Tab, tmp_path: Path) -> None:
    node, count = Node("relu", "activations", "x", ("n",), "2 f32", 16), 5000
    following = [Edge(number, number + 1, "2 f32") for number in range(count - 1)]
    distant = [Edge(0, number, "2 f32") for number in range(10, count, 10)]
    file = tmp_path / "large.html"
    file.write_text(Page("large", [Shown("", None, {"imported": Graph([node] * count, following + distant)})]).html())
    assert file.stat().st_size < 4_000_000
    visit(tab, file.as_uri())
    assert ask(tab, "return boxes().length") == count
    assert ask(tab, "return canvas.getScreenCTM().a * 11 >= 8 && inside(rect(boxes()[0]), rect(canvas))")
    tab.click("#fit")
    assert ask(tab, "return inside(rect(boxes()[4999]), rect(canvas))")


def test_narrow_buffers_keep_their_colours(tab: Tab, tmp_path: Path) -> None:
    count = 1200
    lives = [Buffer("", "matmul", "linear", (), "4 f32", 0, 16, step, step + 1, ()) for step in range(count)]
    steps = (DrawnStep("matmul", "linear", "matmul", 16, ()),) * count
    file = tmp_path / "narrow.html"
    file.write_text(Page("narrow", [Shown("", Memory("@main", 16, 16, 0, 0, tuple(lives), steps))]).html())
    visit(tab, file.as_uri())
    assert ask(tab, "return boxes().length") == count
    assert ask(tab, "return [...new Set(boxes().map((box) => getComputedStyle(box).stroke))]") == ["none"]
    tab.locator("#table tbody tr").nth(5).click()
    visit(tab, file.as_uri(), PHONE)
    assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")


def test_table_keeps_words_whole(tab: Tab, pages: dict[str, str]) -> None:
    for size in (DESKTOP, (1100, 720), PHONE):
        visit(tab, f"{pages['bert']}#memory", size)
        broken = """
            return [...document.querySelectorAll('#table tbody tr')].flatMap((row) => [...row.cells].slice(0, -1))
                .flatMap((cell) => [...cell.childNodes]).filter((node) => node.nodeType === Node.TEXT_NODE)
                .filter((node) => { const range = document.createRange(); range.selectNodeContents(node);
                    return range.getClientRects().length > 1; })
                .map((node) => node.textContent)
        """
        assert ask(tab, "return document.querySelectorAll('#table tbody tr').length") > 10
        assert ask(tab, broken) == []
        panel, rows = "document.querySelector('aside')", "document.querySelectorAll('#table tr')"
        assert ask(tab, f"return [...{rows}].every((row) => rect(row).right <= rect({panel}).right)")
        assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_comparison_has_whole_words_under_its_names(tab: Tab, tmp_path: Path, size: tuple[int, int]) -> None:
    rows: list[Row] = [
        ("changes by the pass", None, None, None),
        ("allocated", "13", "14", "1.08"),
        ("a", "float32[16, 1, 48]", "float32[16, 1, 48]", "1e-05"),
    ]
    file = tmp_path / "both.html"
    file.write_text(Page("both", [Shown("one"), Shown("other")], rows).html())
    visit(tab, f"{file.as_uri()}#comparison", size)
    assert tab.locator(".comparison thead th").all_text_contents() == ["", "one", "other", "other / one"]
    lines = "rect(row.cells[0]).height / parseFloat(getComputedStyle(row).lineHeight)"
    assert ask(tab, f"const row = document.querySelectorAll('.comparison tbody tr')[1]; return {lines}") < 2
    assert ask(tab, "return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("ending", ["", "#of%20another%20page", "#%", "#imported"])
def test_any_address_opens_a_picture(tab: Tab, pages: dict[str, str], ending: str) -> None:
    visit(tab, pages["quantized"] + ending)
    (opened,) = tab.locator("[aria-selected=true]").all_text_contents()
    assert opened == ("imported" if ending == "#imported" else "memory")
    assert ask(tab, "return boxes().length") != 0


def test_back_and_forward_lead_through_pictures(tab: Tab, pages: dict[str, str]) -> None:
    visit(tab, pages["quantized"])
    begun = ask(tab, "return history.length")
    seen = ["memory"]
    for stage in STAGES:
        tab.click(f"#tabs button:text-is('{stage}')")
        seen.append(stage)
    assert ask(tab, "return history.length") == begun + len(STAGES)
    for stage in reversed(seen[:-1]):
        tab.go_back()
        tab.wait_for_selector(f"[aria-selected=true]:text-is('{stage}')")
    tab.go_forward()
    tab.wait_for_selector(f"[aria-selected=true]:text-is('{STAGES[0]}')")
    tab.evaluate("location.hash = 'allocated'")
    tab.wait_for_selector("[aria-selected=true]:text-is('allocated')")
    tab.evaluate("location.hash = 'nothing'")
    tab.wait_for_selector("[aria-selected=true]:text-is('memory')")
    assert ask(tab, "return location.hash") == "#memory"


def test_labels_of_buffers_can_be_read(tab: Tab, pages: dict[str, str]) -> None:
    for size in (DESKTOP, PHONE):
        visit(tab, f"{pages['bert']}#memory", size)
        labels = ask(tab, "return [...document.querySelectorAll('#canvas .node text')].map((text) => text.textContent)")
        assert labels
        assert [label for label in labels if len(label) < 10 and "…" in label] == []


@pytest.mark.parametrize("name", ["bert_memory", "quantized_allocated"])
def test_pictures_look_as_they_did(tab: Tab, pages: dict[str, str], name: str, tmp_path: Path) -> None:
    model, stage = name.split("_")
    visit(tab, f"{pages[model]}#{stage}")
    tab.click("#fit")
    found = tmp_path / f"{name}.png"
    tab.screenshot(path=found)
    reference = REFERENCES / found.name
    pixels, png = small_picture(tab, found.read_bytes())
    if DRAW in os.environ:
        reference.write_bytes(png)
    difference = np.abs(pixels - small_picture(tab, reference.read_bytes())[0]).mean()
    assert difference < MAX_DIFFERENCE, f"{found} is not as {reference} (hint: {DRAW}=1 draws it anew)"


def small_picture(tab: Tab, png: bytes) -> tuple[np.ndarray, bytes]:
    """A picture of any size as a small one: its grey values, and the PNG; the browser does it."""
    pixels, address = tab.evaluate(
        """async ([data, width, height]) => {
            const image = new Image();
            image.src = `data:image/png;base64,${data}`;
            await image.decode();
            const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
            context.imageSmoothingQuality = "high";
            context.drawImage(image, 0, 0, width, height);
            return [[...context.getImageData(0, 0, width, height).data], context.canvas.toDataURL()];
        }""",
        [base64.b64encode(png).decode(), *SMALL],
    )
    grey = np.array(pixels, np.float64).reshape(SMALL[1], SMALL[0], 4)[..., :3].mean(axis=2)
    return grey, base64.b64decode(address.partition(",")[2])
