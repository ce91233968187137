"""Folders of onnxruntime-genai for tests: a small decoder with random weights, as genai's model builder writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

from glow_mlir.frontends.onnx.node import ONNXRUNTIME

VOCABULARY, WIDTH, HIDDEN, HEADS, KEY_HEADS, DEPTH, LAYERS, CONTEXT = 96, 64, 96, 4, 2, 16, 2, 64
BLOCK = 32
MASK = "attention_mask"


class FolderWriter:
    """
    Nodes and initializers of one graph.

    - `level`: the accuracy level of MatMulNBits, or `None` for products of f32.
    - `is_packed`: whether queries, keys and values are one operand of GroupQueryAttention.
    - `rotation`: `inside` GroupQueryAttention, `outside`, with `position_ids`, or `long`, inside with tables that the
      total length chooses.
    - `attributes`: further attributes of GroupQueryAttention.
    """

    def __init__(
        self, *, level: int | None = None, is_packed: bool = True, rotation: str = "inside", **attributes: Any
    ) -> None:
        self.level, self.is_packed, self.rotation, self.attributes = level, is_packed, rotation, attributes
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, kind: str, inputs: list[str], name: str, outputs: list[str] | None = None, **attributes: Any) -> str:
        """Add a node of ONNX, or of onnxruntime if ONNX has none; returns its first result."""
        own = kind in ("GroupQueryAttention", "MatMulNBits", "RotaryEmbedding") or kind.startswith("Skip")
        results = outputs or [f"{name}/output_0"]
        domain = {"domain": ONNXRUNTIME} if own else {}
        self.nodes.append(helper.make_node(kind, inputs, results, name, **domain, **attributes))
        return results[0]

    def tensor(self, name: str, array: np.ndarray) -> str:
        """Add an initializer."""
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def drawn(self, name: str, *shape: int) -> str:
        """Add an initializer of random numbers."""
        return self.tensor(name, (self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def product(self, rows: str, name: str, depth: int, columns: int, output: str | None = None) -> str:
        """A product with weights."""
        outputs = None if output is None else [output]
        if self.level is None:
            return self.node("MatMul", [rows, self.drawn(f"{name}.weight", depth, columns)], name, outputs)
        blocks = depth // BLOCK
        quantized = self.rng.integers(0, 256, (columns, blocks, BLOCK // 2), np.uint8)
        scales = (self.rng.random((columns, blocks)) * 0.1).astype(np.float32)
        weights = [self.tensor(f"{name}.weight_Q4", quantized), self.tensor(f"{name}.weight_scales", scales)]
        sizes = {"K": depth, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": self.level}
        return self.node("MatMulNBits", [rows, *weights], f"{name}_Q4", outputs, **sizes)

    def lengths(self) -> list[str]:
        """Nodes that make lengths of a mask: the last index of each sequence, and the total length."""
        one, axis = (self.tensor(name, np.array(value)) for name, value in (("one", 1), ("axis", [1])))
        total = self.node("ReduceSum", [MASK, axis], "mask/ReduceSum", keepdims=0)
        last = self.node("Sub", [total, axis], "mask/Sub")
        length = self.node("Gather", [self.node("Shape", [MASK], "mask/Shape"), one], "mask/Gather", axis=0)
        if self.rotation == "long":
            limit = self.tensor("limit", np.array(CONTEXT // 2))
            branches = {f"{name}_branch": self.tables(factor, name) for name, factor in (("then", 0.5), ("else", 1.0))}
            chosen = self.node("Greater", [length, limit], "rope/Greater")
            self.node("If", [chosen], "rope/If", ["cos_cache", "sin_cache"], **branches)
        else:
            self.initializers.extend(numpy_helper.from_array(*item) for item in angles(1.0, ""))
        return [self.node("Cast", [name], f"{name}/Cast", to=TensorProto.INT32) for name in (last, length)]

    def tables(self, factor: float, name: str) -> onnx.GraphProto:
        """A branch with tables of rotary positions as constants."""
        found = [numpy_helper.from_array(*item) for item in angles(factor, f"_{name}")]
        nodes = [helper.make_node("Constant", [], [table.name], value=table) for table in found]
        outputs = [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, list(t.dims)) for t in found]
        return helper.make_graph(nodes, name, [], outputs)

    def attention(self, layer: int, rows: str, lengths: list[str]) -> str:
        """Attention with its products."""
        name, widths = f"layers.{layer}/attn", (HEADS * DEPTH, KEY_HEADS * DEPTH, KEY_HEADS * DEPTH)
        if self.is_packed:
            operands = [self.product(rows, f"{name}/qkv_proj", WIDTH, sum(widths)), "", ""]
        else:
            parts = zip("qkv", widths, strict=True)
            operands = [self.product(rows, f"{name}/{letter}_proj", WIDTH, width) for letter, width in parts]
        rotary = {"do_rotary": 1, "rotary_interleaved": 0}
        tables = ["cos_cache", "sin_cache"]
        if self.rotation == "outside":
            operands[:2] = [
                self.node("RotaryEmbedding", [item, "position_ids", *tables], f"{name}/{letter}_rotary")
                for letter, item in zip("qk", operands, strict=False)
            ]
            rotary, tables = {}, ["", ""]
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        present = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        own = f"{name}/GroupQueryAttention"
        sizes = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "scale": DEPTH**-0.5}
        forms = {**sizes, **rotary, **self.attributes}
        inputs = [*operands, *past, *lengths, *tables, "", "", ""]
        result = self.node("GroupQueryAttention", inputs, own, [f"{own}/output_0", *present], **forms)
        return self.product(result, f"{name}/o_proj", HEADS * DEPTH, WIDTH)

    def norm(self, name: str, rows: str, added: str | None) -> tuple[str, str]:
        """The norm of rows, or of their sum with others; returns the result and the sum."""
        scale = self.tensor(f"{name}.weight", (1 + 0.1 * self.rng.standard_normal(WIDTH)).astype(np.float32))
        if added is None:
            forms = {"axis": -1, "epsilon": 1e-6, "stash_type": 1}
            return self.node("SimplifiedLayerNormalization", [rows, scale], name, **forms), rows
        outputs = [f"{name}/output_0", "", "", f"{name}/output_3"]
        self.node("SkipSimplifiedLayerNormalization", [rows, added, scale], name, outputs, epsilon=1e-6)
        return outputs[0], outputs[3]

    def graph(self) -> onnx.GraphProto:
        """The whole graph."""
        lengths = self.lengths()
        rows = self.node("Gather", [self.drawn("embed_tokens.weight", VOCABULARY, WIDTH), "input_ids"], "embed_tokens")
        added = None
        for layer in range(LAYERS):
            name = f"layers.{layer}"
            normed, rows = self.norm(f"{name}/input_layernorm", rows, added)
            normed, rows = self.norm(f"{name}/post_layernorm", rows, self.attention(layer, normed, lengths))
            gate, up = (self.product(normed, f"{name}/{part}_proj", WIDTH, HIDDEN) for part in ("gate", "up"))
            shares = self.node("Sigmoid", [gate], f"{name}/Sigmoid")
            gate = self.node("Mul", [gate, shares], f"{name}/act_fn/Mul")
            inner = self.node("Mul", [gate, up], f"{name}/mlp/Mul")
            added = self.product(inner, f"{name}/down_proj", HIDDEN, WIDTH)
        normed, _ = self.norm("final_norm", rows, added)
        self.product(normed, "lm_head", WIDTH, VOCABULARY, "logits")
        return helper.make_graph(self.nodes, "main_graph", self.inputs(), self.outputs(), self.initializers)

    def inputs(self) -> list[onnx.ValueInfoProto]:
        """Token ids, mask, positions where they are used, and caches."""
        sizes = {"input_ids": "sequence_length", MASK: "total_sequence_length"}
        if self.rotation == "outside":
            sizes["position_ids"] = "sequence_length"
        ids = (helper.make_tensor_value_info(n, TensorProto.INT64, ["batch_size", s]) for n, s in sizes.items())
        return [*ids, *self.caches("past_key_values", "past_sequence_length")]

    def outputs(self) -> list[onnx.ValueInfoProto]:
        """Logits, and caches."""
        shape = ["batch_size", "sequence_length", VOCABULARY]
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
        return [logits, *self.caches("present", "total_sequence_length")]

    def caches(self, name: str, length: str) -> list[onnx.ValueInfoProto]:
        """Keys and values of each layer."""
        return [
            helper.make_tensor_value_info(
                f"{name}.{layer}.{kind}", TensorProto.FLOAT, ["batch_size", KEY_HEADS, length, DEPTH]
            )
            for layer in range(LAYERS)
            for kind in ("key", "value")
        ]


def angles(factor: float, suffix: str) -> list[tuple[np.ndarray, str]]:
    """Tables of cosines and sines with their names, for positions times a factor."""
    frequencies = 1e4 ** (-np.arange(0, DEPTH, 2) / DEPTH)
    turns = factor * np.arange(CONTEXT)[:, None] * frequencies
    return [
        (function(turns).astype(np.float32), f"{name}_cache{suffix}")
        for name, function in (("cos", np.cos), ("sin", np.sin))
    ]


def write_folder(folder: Path, *, vocabulary: int = VOCABULARY, **forms: Any) -> Path:
    """Write description, graph and external data; `forms` are those of `FolderWriter`."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ONNXRUNTIME, 1)]
    model = helper.make_model(FolderWriter(**forms).graph(), opset_imports=opsets, ir_version=10)
    convert_model_to_external_data(model, location="model.onnx.data", size_threshold=256)
    folder.mkdir(exist_ok=True)
    onnx.save_model(model, folder / "model.onnx")
    write_description(folder, {"vocab_size": vocabulary})
    return folder


def write_description(
    folder: Path,
    changes: dict[str, Any] | None = None,
    decoder: dict[str, Any] | None = None,
    search: dict[str, Any] | None = None,
) -> None:
    """Write `genai_config.json`, with `search`, changes of its entry `model`, and of `decoder` in that."""
    names = {"input_ids": "input_ids", "attention_mask": MASK, "past_key_names": "past_key_values.%d.key"}
    own = {"filename": "model.onnx", "head_size": DEPTH, "inputs": names, "outputs": {"logits": "logits"}}
    model = {
        "type": "llama",
        "context_length": CONTEXT,
        "vocab_size": VOCABULARY,
        "bos_token_id": 1,
        "eos_token_id": [2, 3],
        "decoder": {**own, **(decoder or {})},
        **(changes or {}),
    }
    description = {"model": model, "search": search or {"do_sample": False, "top_k": 50}}
    (folder / "genai_config.json").write_text(json.dumps(description))
