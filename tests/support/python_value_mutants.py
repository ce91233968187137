"""
Mutants of models whose inputs, insides or outputs are strings, sequences, optionals or maps: each ends in one clean
error, as it is compiled or as it runs, or answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
from fuzzing import Fuzzer
from onnx import TensorProto, helper, numpy_helper
from onnx_mutants import check_line
from onnx_mutations import mutated

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import CompilerBugError, GlowError, InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dtypes import STRING

FLOAT, INT, TEXT, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL
ML = "ai.onnx.ml"

MAX_DRAWN = 1 << 20
"""Elements of an input at most that are drawn."""

node, tensor, sequence = helper.make_node, helper.make_tensor_value_info, helper.make_tensor_sequence_value_info


def _strings(name: str, *words: str) -> onnx.TensorProto:
    found = np.empty(len(words), object)
    found[:] = words
    return numpy_helper.from_array(found, name)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    opsets = [helper.make_opsetid(*item) for item in (("", 21), (ML, 3), ("com.microsoft", 1))]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _classifier() -> onnx.ModelProto:
    """Strings and numbers to labels and maps, as scikit-learn's pipelines are written."""
    labels: dict[str, Any] = {"classlabels_strings": ["a", "b", "c"]}
    nodes = [
        node("OneHotEncoder", ["kind"], ["hot"], "hot", domain=ML, cats_strings=["s", "m"], zeros=1),
        node("Reshape", ["hot", "shape"], ["flat"], "flat"),
        node("Imputer", ["x"], ["filled"], "fill", domain=ML, imputed_value_floats=[1.0], replaced_value_float=0.0),
        node("Scaler", ["filled"], ["scaled"], "scale", domain=ML, offset=[1.0, 2.0], scale=[0.5, 0.5]),
        node("Concat", ["flat", "scaled"], ["rows"], "join", axis=1),
        node("Normalizer", ["rows"], ["normal"], "norm", domain=ML, norm="L2"),
        node(
            "LinearClassifier",
            ["normal"],
            ["label", "scores"],
            "classify",
            domain=ML,
            coefficients=[0.1 * n for n in range(12)],
            intercepts=[0.1, 0.2, 0.3],
            post_transform="SOFTMAX",
            **labels,
        ),
        node("ZipMap", ["scores"], ["maps"], "zip", domain=ML, **labels),
    ]
    item = helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(FLOAT, []))
    outputs = [tensor("label", TEXT, ["N"]), helper.make_value_info("maps", helper.make_sequence_type_proto(item))]
    shape = numpy_helper.from_array(np.array([-1, 2]), "shape")
    return _model(nodes, [tensor("kind", TEXT, ["N", 1]), tensor("x", FLOAT, ["N", 2])], outputs, [shape])


def _machines() -> onnx.ModelProto:
    """Support vectors and trees, whose labels are encoded."""
    nodes = [
        node(
            "SVMClassifier",
            ["x"],
            ["label", "scores"],
            "svm",
            domain=ML,
            classlabels_ints=[3, 5],
            coefficients=[0.5, -0.25, 0.75],
            kernel_params=[0.2, 0.1, 2.0],
            kernel_type="RBF",
            prob_a=[-1.0],
            prob_b=[0.1],
            rho=[0.1],
            support_vectors=[1.0, 2.0, 3.0, 4.0, -1.0, 0.5],
            vectors_per_class=[2, 1],
        ),
        node("LabelEncoder", ["label"], ["word"], "encode", domain=ML, keys_int64s=[3, 5], values_strings=["x", "y"]),
        node(
            "TreeEnsembleRegressor",
            ["x"],
            ["sum"],
            "trees",
            domain=ML,
            n_targets=1,
            nodes_treeids=[0, 0, 0],
            nodes_nodeids=[0, 1, 2],
            nodes_featureids=[1, 0, 0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_values=[0.5, 0.0, 0.0],
            nodes_truenodeids=[1, 0, 0],
            nodes_falsenodeids=[2, 0, 0],
            target_treeids=[0, 0],
            target_nodeids=[1, 2],
            target_ids=[0, 0],
            target_weights=[1.5, -2.5],
        ),
    ]
    outputs = [tensor("word", TEXT, ["N"]), tensor("scores", FLOAT, ["N", 2]), tensor("sum", FLOAT, ["N", 1])]
    return _model(nodes, [tensor("x", FLOAT, ["N", 2])], outputs)


def _sequences() -> onnx.ModelProto:
    """Sequences that are given, grown in a loop, and joined."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"], "again"), node("SequenceInsert", ["t", "x"], ["u"], "grow")],
        "body",
        [tensor("i", INT, []), tensor("go", TRUTH, []), sequence("t", FLOAT, None)],
        [tensor("on", TRUTH, []), sequence("u", FLOAT, None)],
    )
    nodes = [
        node("SplitToSequence", ["x"], ["s"], "split", axis=0),
        node("SequenceInsert", ["given", "x"], ["g"], "insert"),
        node("Loop", ["trips", "", "g"], ["l"], "loop", body=body),
        node("SequenceAt", ["s", "place"], ["y"], "at"),
        node("SequenceErase", ["s", "place"], ["e"], "erase"),
        node("ConcatFromSequence", ["e"], ["c"], "join", axis=0, new_axis=0),
        node("SequenceLength", ["l"], ["n"], "length"),
    ]
    outputs = [sequence("l", FLOAT, None), tensor("y", FLOAT, None), tensor("c", FLOAT, None), tensor("n", INT, [])]
    constants = [numpy_helper.from_array(np.array(n), name) for name, n in (("trips", 2), ("place", 1))]
    return _model(nodes, [tensor("x", FLOAT, [3, 2]), sequence("given", FLOAT, None)], outputs, constants)


def _texts() -> onnx.ModelProto:
    """Texts that Python takes apart, before machine code and behind it."""
    nodes = [
        node("StringNormalizer", ["text"], ["low"], "normalize", case_change_action="LOWER", stopwords=["no"]),
        node(
            "Tokenizer",
            ["low"],
            ["words"],
            "tokens",
            domain="com.microsoft",
            mark=0,
            pad_value="#",
            mincharnum=1,
            tokenexp="[a-z]+",
        ),
        node(
            "TfIdfVectorizer",
            ["words"],
            ["counts"],
            "count",
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0, 1],
            pool_strings=["cat", "dog"],
        ),
        node("ArgMax", ["counts"], ["index"], "most", axis=1, keepdims=0),
        node("ArrayFeatureExtractor", ["names", "index"], ["label"], "label", domain=ML),
        node("StringConcat", ["label", "mark"], ["y"], "mark"),
        node("StringSplit", ["text"], ["parts", "numbers"], "parts", delimiter=" ", maxsplit=3),
        node("RegexFullMatch", ["text"], ["m"], "match", pattern="[a-z ]*"),
    ]
    outputs = [tensor("y", TEXT, None), tensor("parts", TEXT, None), tensor("numbers", INT, None)]
    names = [_strings("names", "cats", "dogs"), _strings("mark", "!")]
    return _model(nodes, [tensor("text", TEXT, ["N"])], [*outputs, tensor("m", TRUTH, ["N"])], names)


@cache
def models() -> Sequence[onnx.ModelProto]:
    """The models that are damaged, each of which is valid."""
    makers: Sequence[Callable[[], onnx.ModelProto]] = (_classifier, _machines, _sequences, _texts)
    return [maker() for maker in makers]


def mutant(seed: int) -> bytes:
    """A damaged model."""
    return mutated(models()[seed % len(models())], Random(seed))


def check(seed: int) -> bool:
    """Whether a mutant answers; raises where it neither does nor is refused in one clean line."""
    return answers(mutant(seed), seed)


def answers(data: bytes, seed: int = 0) -> bool:
    """Whether a model answers what is drawn for its inputs; raises for anything but one clean error."""
    rng = np.random.default_rng(seed)
    try:
        session = InferenceSession(data, cache=False)
        session.run(None, {item.name: _drawn(item, rng) for item in session.compiled.first.inputs})
    except CompilerBugError:
        raise
    except GlowError as error:
        check_line(error)
        return False
    return True


def _drawn(argument: Argument, rng: np.random.Generator) -> Any:
    """What an input may be, now and then of another type."""
    if argument.type:
        count = int(rng.integers(0, 3))
        items = [rng.standard_normal(3).astype(np.float32) for _ in range(count)]
        return [None, items, np.ones(2), {"a": 1.0}][int(rng.choice(4, p=[0.1, 0.7, 0.1, 0.1]))]
    shape = [size if isinstance(size, int) else 2 for size in argument.shape or (2,)]
    if math.prod(shape) > MAX_DRAWN:
        raise InputError(f"input '{argument.name}' is too large to be drawn")
    if argument.dtype == STRING:
        return np.array(["s", "a cat", "No dog", "é"], object)[rng.integers(0, 4, shape)]
    return rng.integers(0, 3, shape).astype(argument.numpy_dtype)


def prepared() -> None:
    """Load what cases need, which takes longer than most of them."""
    answers(models()[0].SerializeToString())


STAGES: Mapping[str, Fuzzer] = {"": Fuzzer(check, prepare=prepared, show=lambda seed: repr(mutant(seed)[:200]))}
"""The fuzzer of such models."""
