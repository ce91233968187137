"""Folders of onnxruntime-genai: logits of onnxruntime with caches, in chunks and for several sequences; refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from genai_folders import CONTEXT, DEPTH, KEY_HEADS, LAYERS, MASK, VOCABULARY, write_description, write_folder
from onnx import helper

import glow_mlir
from glow_mlir.dialects.glow_high.blockwise import BlockwiseMatMulOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import largest_shape
from glow_mlir.errors import GlowError, ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.generation.text_files import tokenizer_of
from glow_mlir.support.file_kinds import is_decoder

PAGE, PAGES = 8, 16
FORMS: dict[str, Any] = {"pages": PAGES, "page": PAGE, "rows": 32, "outputs": 32, "sequences": 2, "cache": "float32"}


class Paged:
    """Calls of our session, with two sequences in pages of their own."""

    def __init__(self, folder: Path, context: int | None = None, backend: str = "interpreter") -> None:
        program: Any = open_model(folder, context).program(**FORMS)
        keywords: dict[str, Any] = {"dimensions": program.dimensions, "backend": backend, "threads": 1}
        self.session = glow_mlir.InferenceSession(program, **keywords)
        self.table = np.array([[7, 1, 4, 2], [3, 0, 9, 5]])

    def call(self, tokens: np.ndarray, positions: np.ndarray, sequences: np.ndarray | int = 0) -> np.ndarray:
        """The logits of all rows."""
        count = len(tokens)
        given = {"tokens": tokens, "positions": positions, "table": self.table, "last": np.arange(count)}
        feeds = {**given, "sequences": np.broadcast_to(sequences, (count,))}
        return self.session.run(None, {name: np.ascontiguousarray(value, np.int64) for name, value in feeds.items()})[0]


class Cached:
    """Calls of onnxruntime's session of the same graph, for one sequence, whose caches are passed on."""

    def __init__(self, folder: Path) -> None:
        runtime: Any = pytest.importorskip("onnxruntime")
        self.session = runtime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        kinds = [f"{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
        self.past = {kind: np.zeros((1, KEY_HEADS, 0, DEPTH), np.float32) for kind in kinds}
        self.length = 0

    def call(self, tokens: np.ndarray) -> np.ndarray:
        """The logits of all rows."""
        positions = np.arange(self.length, self.length + len(tokens))[None]
        self.length += len(tokens)
        known = {"input_ids": tokens[None], MASK: np.ones((1, self.length), np.int64), "position_ids": positions}
        named = {value.name for value in self.session.get_inputs()}
        feeds = {name: value for name, value in known.items() if name in named}
        feeds |= {f"past_key_values.{kind}": value for kind, value in self.past.items()}
        logits, *present = self.session.run(["logits", *(f"present.{kind}" for kind in self.past)], feeds)
        self.past = dict(zip(self.past, present, strict=True))
        return logits[0]


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param({}, id="packed"),
        pytest.param({"is_packed": False, "rotation": "outside"}, id="positions"),
        pytest.param({"level": 0, "is_packed": False, "local_window_size": 5, "softcap": 4.0}, id="windows"),
        pytest.param({"level": 4}, id="int8"),
        pytest.param({"rotation": "long"}, id="long"),
    ],
)
def test_logits_are_those_of_onnxruntime_with_caches(forms: dict[str, Any], tmp_path: Path) -> None:
    folder, rng = write_folder(tmp_path, **forms), np.random.default_rng(1)
    # A graph that asks for the total length is told the context.
    paged = Paged(folder, CONTEXT // 2 if forms.get("rotation") == "long" else None)
    first, second = (rng.integers(0, VOCABULARY, count) for count in (24, 9))
    alone, other = Cached(folder), Cached(folder)
    wanted = np.concatenate([alone.call(first[:12]), *(alone.call(first[i : i + 1]) for i in range(12, 24))])
    found = [paged.call(first[:5], np.arange(5)), paged.call(first[5:12], np.arange(5, 12))]
    found += [paged.call(first[i : i + 1], np.array([i])) for i in range(12, 16)]
    tokens, positions = np.concatenate([second, first[16:]]), np.concatenate([np.arange(9), np.arange(16, 24)])
    both = paged.call(tokens, positions, np.repeat([1, 0], [9, 8]))
    # A row of 8 bits may differ in one step where sums differ in their last bit.
    scale = float(np.abs(wanted).max())
    tolerance: dict[str, Any] = {"rtol": 0, "atol": scale * (0.03 if forms.get("level") == 4 else 1e-5)}
    np.testing.assert_allclose(np.concatenate(found), wanted[:16], **tolerance)
    np.testing.assert_allclose(both[:9], other.call(second), **tolerance)
    np.testing.assert_allclose(both[9:], wanted[16:], **tolerance)


def bits_of(folder: Path, **forms: Any) -> set[int]:
    """The bits to which rows are rounded in a program."""
    program = open_model(folder).program(**FORMS, **forms)
    products = [op for op in program.module(program.dimensions).walk() if isinstance(op, BlockwiseMatMulOp)]
    return {integer(op.left_bits) for op in products}


def test_rows_are_rounded_as_the_graph_says_unless_the_caller_says_otherwise(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, level=4)
    assert [bits_of(folder), bits_of(folder, left_bits=15), bits_of(folder, left_bits=0)] == [{8}, {15}, {0}]
    assert bits_of(write_folder(tmp_path, level=0)) == {0}


def test_heads_are_computed_for_wanted_rows_only(tmp_path: Path) -> None:
    program = open_model(write_folder(tmp_path, level=4)).program(**{**FORMS, "outputs": 2})
    *_, head = [op for op in program.module(program.dimensions).walk() if isinstance(op, BlockwiseMatMulOp)]
    assert largest_shape(head.result) == (1, 2, VOCABULARY)


def test_a_folder_is_a_decoder_with_the_ends_of_its_description(tmp_path: Path) -> None:
    tokenizers: Any = pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path)
    words = {f"w{number}": number for number in range(VOCABULARY)}
    tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0")).save(str(folder / "tokenizer.json"))
    model = open_model(folder)
    assert is_decoder(folder)
    assert (model.config.family, model.config.context) == ("llama", CONTEXT)
    assert tokenizer_of(model, None).ends == {2, 3}
    assert [path.name for path in model.files] == ["genai_config.json", "model.onnx", "model.onnx.data"]
    with pytest.raises(OptionError, match="no result 'hidden'"):
        model.program(**FORMS, result="hidden")


@pytest.mark.parametrize(
    ("decoder", "changes", "reason"),
    [
        ({}, {"encoder": {"filename": "e.onnx"}}, "an encoder's results"),
        ({}, {"vision": {"filename": "v.onnx"}}, "images as inputs"),
        ({"pipeline": [{"a": {}}]}, {}, "a pipeline of several graphs"),
        ({"sliding_window": {"slide_inputs": True}}, {}, "slide_inputs"),
        ({"filename": "../model.onnx"}, {}, "not in the folder"),
        ({"inputs": []}, {}, "must be an object"),
        ({}, {"context_length": 0}, "must be a size"),
        ({}, {"decoder": None}, "must be an object"),
    ],
)
def test_descriptions_of_anything_else_are_refused_by_name(
    decoder: dict[str, Any], changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    write_description(tmp_path, changes, decoder)
    (tmp_path / "model.onnx").touch()
    with pytest.raises(GlowError, match=reason) as caught:
        open_model(tmp_path)
    assert "genai_config.json" in str(caught.value)


@pytest.mark.parametrize(
    ("search", "unused"),
    [
        ({"do_sample": False, "temperature": 0.6, "top_k": 50, "num_beams": 1, "max_length": 9}, []),
        ({"do_sample": True, "temperature": 0.6, "top_k": 50, "top_p": 1.0}, ["temperature", "top_k"]),
        ({"repetition_penalty": 1.1, "num_beams": 4, "colour": 3}, ["repetition_penalty", "num_beams"]),
    ],
)
def test_settings_of_search_that_are_not_used_are_known(
    search: dict[str, Any], unused: list[str], tmp_path: Path
) -> None:
    write_description(tmp_path, search=search)
    (tmp_path / "model.onnx").touch()
    source: Any = open_model(tmp_path).source
    assert list(source.unused) == unused


def changed(folder: Path, change: Any) -> Path:
    """The folder with a changed graph."""
    model = onnx.load_model(folder / "model.onnx", load_external_data=False)
    change(model.graph)
    onnx.save_model(model, folder / "model.onnx")
    return folder


def other_attention(graph: onnx.GraphProto) -> None:
    """Rename the operator of attention."""
    for node in graph.node:
        if node.op_type == "GroupQueryAttention":
            node.op_type = "MultiHeadAttention"


def masked_rows(graph: onnx.GraphProto) -> None:
    """Read values of the mask."""
    graph.node.insert(0, helper.make_node("Cast", [MASK], ["shown"], "shown", to=1))
    graph.node.insert(1, helper.make_node("Unsqueeze", ["shown", "axis"], ["shown.rows"]))
    for node in graph.node:
        if node.op_type == "Sigmoid":
            node.op_type, node.domain = "Mul", ""
            node.input.append("shown.rows")


def quantized_caches(graph: onnx.GraphProto) -> None:
    """Declare that keys are quantized."""
    for node in graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(helper.make_attribute("k_quant_type", "PER_TENSOR"))


def one_row(graph: onnx.GraphProto) -> None:
    """Declare logits of the last token only."""
    graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (other_attention, "MultiHeadAttention reads 'past_key_values.0.key', and only GroupQueryAttention"),
        (masked_rows, "Cast reads 'attention_mask'"),
        (quantized_caches, "quantized earlier keys"),
        (one_row, "one row only"),
    ],
)
def test_graphs_that_keep_or_relate_anything_else_are_refused_by_node(change: Any, reason: str, tmp_path: Path) -> None:
    program = open_model(changed(write_folder(tmp_path), change)).program(**FORMS)
    with pytest.raises(UnsupportedError, match=reason):
        program.module(program.dimensions)


def between(*nodes: onnx.NodeProto, **constants: np.ndarray) -> Any:
    """A change of the graph: nodes that make `other` of `inner`, the rows in front of the first product."""

    def change(graph: onnx.GraphProto) -> None:
        (place, first), *_ = [item for item in enumerate(graph.node) if "qkv_proj" in item[1].name]
        made = [*map(copy, nodes), copy(first)]
        for node in made:
            renamed = [first.input[0] if name == "inner" else name for name in node.input]
            del node.input[:]
            node.input.extend(renamed)
        made[-1].input[0] = "other"
        del graph.node[place]
        for number, node in enumerate(made):
            graph.node.insert(place + number, node)
        graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())

    return change


def copy(node: onnx.NodeProto) -> onnx.NodeProto:
    """A copy of a node."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    return found


SIZE = [
    helper.make_node("Shape", ["inner"], ["sizes"]),
    helper.make_node("Gather", ["sizes", "place"], ["length"], "length"),
]
"""Nodes that make the number of tokens of a call."""

ONE = {"place": np.array(1)}

RELATING: dict[str, tuple[Any, str]] = {
    "sums of all rows before": (
        between(helper.make_node("CumSum", ["inner", "place"], ["other"], "sums"), **ONE),
        "'sums': .* relates tokens",
    ),
    "the mean of rows": (
        between(
            helper.make_node("ReduceMean", ["inner", "axes"], ["mean"], "mean"),
            helper.make_node("Sub", ["inner", "mean"], ["other"]),
            axes=np.array([1]),
        ),
        "relates tokens",
    ),
    "shares of rows": (between(helper.make_node("Softmax", ["inner"], ["other"], "shares", axis=1)), "relates tokens"),
    "one scale of all rows": (
        between(
            helper.make_node("DynamicQuantizeLinear", ["inner"], ["codes", "scale", "zero"], "scales"),
            helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["other"]),
        ),
        "'scales': .* relates tokens",
    ),
    "rows turned round": (
        between(
            helper.make_node("Slice", ["inner", "from", "to", "place1", "back"], ["other"], "turned"),
            **{"from": np.array([-1]), "to": np.array([-(2**62)]), "place1": np.array([1]), "back": np.array([-1])},
        ),
        "relates tokens",
    ),
    "columns of rows in a row": (
        between(
            helper.make_node("Transpose", ["inner"], ["turned"], perm=[0, 2, 1]),
            helper.make_node("Shape", ["inner"], ["sizes"]),
            helper.make_node("Reshape", ["turned", "sizes"], ["other"], "joined"),
        ),
        "'joined': reshape relates tokens",
    ),
    "the number of rows": (
        between(
            *SIZE,
            helper.make_node("Cast", ["length"], ["number"], to=1),
            helper.make_node("Div", ["inner", "number"], ["other"], "shares"),
            **ONE,
        ),
        "'shares': div computes with the number of tokens",
    ),
    "places in the call": (
        between(
            *SIZE,
            helper.make_node("Range", ["zero", "length", "place"], ["places"]),
            helper.make_node("Cast", ["places"], ["numbers"], to=1),
            helper.make_node("Unsqueeze", ["numbers", "axis"], ["column"]),
            helper.make_node("Add", ["inner", "column"], ["other"], "added"),
            **ONE,
            zero=np.array(0),
        ),
        "add (adds something that depends on the place|computes with the number)",
    ),
}


@pytest.mark.parametrize("sizes", [{}, {"rows": 4, "outputs": 4}])
@pytest.mark.parametrize(("change", "reason"), RELATING.values(), ids=RELATING)
def test_operators_that_relate_tokens_are_refused(
    change: Any, reason: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    program = open_model(changed(write_folder(tmp_path), change)).program(**FORMS)
    with pytest.raises(UnsupportedError, match=reason):
        program.module({**program.dimensions, **sizes})


APART: dict[str, Any] = {
    "rows in another shape": between(
        helper.make_node("Reshape", ["inner", "flat"], ["heads"]),
        helper.make_node("LpNormalization", ["heads"], ["norms"], axis=-1),
        helper.make_node("Shape", ["inner"], ["sizes"]),
        helper.make_node("Reshape", ["norms", "sizes"], ["other"]),
        flat=np.array([-1, 16]),
    ),
    "turned axes": between(
        helper.make_node("Transpose", ["inner"], ["turned"], perm=[2, 0, 1]),
        helper.make_node("Softmax", ["turned"], ["shares"], axis=0),
        helper.make_node("Transpose", ["shares"], ["other"], perm=[1, 2, 0]),
    ),
    "ones for each row": between(
        helper.make_node("Shape", ["inner"], ["sizes"]),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"]),
        helper.make_node("Add", ["inner", "zeros"], ["other"]),
    ),
}


def test_heads_of_transposed_tables_compute_the_wanted_rows(tmp_path: Path) -> None:
    """As the model builder writes heads whose matrix is the table of embeddings."""

    def tied(graph: onnx.GraphProto) -> None:
        head = next(node for node in graph.node if "lm_head" in node.name)
        graph.node.insert(0, helper.make_node("Transpose", ["embed_tokens.weight"], ["turned"], perm=[1, 0]))
        head.input[1] = "turned"

    program = open_model(changed(write_folder(tmp_path), tied)).program(**{**FORMS, "outputs": 1})
    module = program.module(program.dimensions)
    shapes = [largest_shape(op.results[0]) for op in module.walk() if op.name == "glow_high.matmul"]
    assert shapes[-1] == (1, 1, VOCABULARY)


@pytest.mark.parametrize("outputs", [1, 32])
@pytest.mark.parametrize("change", APART.values(), ids=APART)
def test_operators_of_each_row_are_not(change: Any, outputs: int, tmp_path: Path) -> None:
    program = open_model(changed(write_folder(tmp_path), change)).program(**{**FORMS, "outputs": outputs})
    program.module(program.dimensions)


def test_a_vocabulary_or_context_that_the_graph_does_not_have_is_an_error(tmp_path: Path) -> None:
    program = open_model(write_folder(tmp_path, vocabulary=VOCABULARY + 1)).program(**FORMS)
    with pytest.raises(ModelError, match="96 columns"):
        program.module(program.dimensions)
    write_description(tmp_path, {"context_length": 2 * CONTEXT})
    program = open_model(tmp_path).program(**FORMS)
    with pytest.raises(ModelError, match="too short for a context of 128"):
        program.module(program.dimensions)
