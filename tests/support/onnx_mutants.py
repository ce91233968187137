"""Mutants of ONNX models: each ends in one clean error, or is imported and allowed by the standard's own checker."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

import contrib_mutants
import numpy as np
import onnx
import onnx.printer
from fuzzing import Fuzzer
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference
from onnx_models import integers, model_of, node, value, weight
from onnx_mutations import mutated

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.errors import CompilerBugError, GlowError
from glow_mlir.frontends.onnx.importer import import_model

COMPILED = 16
"""One of so many mutants that are accepted becomes machine code."""


class WrongAcceptanceError(AssertionError):
    """A mutant that the standard forbids, and that is imported."""


def _weight(name: str, *shape: int) -> onnx.TensorProto:
    array = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(array, name)


def _convolutional() -> onnx.ModelProto:
    nodes = [
        node("Conv", "x w b", "c", "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], group=1),
        node("BatchNormalization", "c s o m v", "n", "norm", epsilon=1e-3),
        node("Relu", "n", "r", "act"),
        node("MaxPool", "r", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", "p p", "j", "join", axis=1),
        node("Flatten", "j", "f", "flat", axis=1),
        node("Gemm", "f g", "y", "dense", alpha=0.5, transB=1),
    ]
    weights = [_weight("w", 4, 2, 3, 3), *(_weight(name, 4) for name in "bsom"), weight("v", 1, 2, 3, 4)]
    inputs = [value("x", shape=(1, 2, 4, 4))]
    model = model_of(nodes, inputs, [], [*weights, _weight("g", 3, 32)], opset=15)
    model.graph.output.append(value("y", shape=(1, 3)))
    model.graph.value_info.extend([value("r", shape=(1, 4, 4, 4)), value("f", shape=(1, 32))])
    return model


def _encoder() -> onnx.ModelProto:
    nodes = [
        node("Gather", "table ids", "e", "embed", axis=0),
        node("LayerNormalization", "e s o", "n", "norm", axis=-1),
        node("Transpose", "n", "t", "turn", perm=[0, 2, 1]),
        node("MatMul", "n t", "q", "scores"),
        node("Softmax", "q", "p", "attention", axis=-1),
        node("MatMul", "p n", "a", "mix"),
        node("Shape", "a", "size", "shape"),
        node("Slice", "size zero two", "head", "cut"),
        node("Concat", "head rest", "wanted", "join", axis=0),
        node("Reshape", "a wanted", "h", "heads"),
        node("ReduceMean", "h axes", "y", "mean", keepdims=0),
    ]
    inputs = [value("ids", TensorProto.INT64, (1, 3))]
    weights = [_weight("table", 7, 4), _weight("s", 4), _weight("o", 4), integers("zero", 0), integers("two", 2)]
    return model_of(nodes, inputs, ["y"], [*weights, integers("rest", 2, 2), integers("axes", 1)])


def _recurrent() -> onnx.ModelProto:
    nodes = [
        node("LSTM", "x w r b", "h last cell", "lstm", hidden_size=3, direction="forward"),
        node("Squeeze", "h axes", "s", "squeeze"),
        node("Split", "s", "y z", "split", axis=2, num_outputs=2),
    ]
    weights = [_weight("w", 1, 12, 2), _weight("r", 1, 12, 3), _weight("b", 1, 24), integers("axes", 1)]
    return model_of(nodes, [value("x", shape=(2, 1, 2))], ["y", "z", "last"], weights)


def _quantized() -> onnx.ModelProto:
    nodes = [
        node("QuantizeLinear", "x scale zero", "q", "quantize"),
        node("DequantizeLinear", "q scale zero", "d", "dequantize", axis=0),
        node("DequantizeLinear", "codes scales", "f", "filter", axis=0),
        node("Conv", "d f", "y", "conv", dilations=[1, 1]),
    ]
    codes = numpy_helper.from_array(np.arange(18, dtype=np.int8).reshape(2, 1, 3, 3), "codes")
    zero = numpy_helper.from_array(np.array(3, np.uint8), "zero")
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "scale")
    return model_of(nodes, [value("x", shape=(1, 1, 4, 4))], ["y"], [codes, zero, scale, weight("scales", 0.1, 0.2)])


def _branching() -> onnx.ModelProto:
    branches = {
        "then_branch": helper.make_graph([node("Neg", "x", "n")], "then", [], [value("n")]),
        "else_branch": helper.make_graph([node("Add", "x k", "e")], "else", [], [value("e")], [weight("k", 1, 2)]),
    }
    body = helper.make_graph(
        [node("Mul", "a x", "b"), node("Identity", "c", "d"), node("Exp", "a", "scan")],
        "body",
        [value("i", TensorProto.INT64, ()), value("c", TensorProto.BOOL, ()), value("a")],
        [value("d", TensorProto.BOOL, ()), value("b"), value("scan")],
    )
    nodes = [node("If", "chosen", "r", "if", **branches), node("Loop", "trips  r", "y z", "loop", body=body)]
    nodes[1].input.insert(1, "")
    trips = numpy_helper.from_array(np.array(2), "trips")
    return model_of(nodes, [value("x"), value("chosen", TensorProto.BOOL, ())], ["y", "z"], [trips])


def _calling() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    body = [node("Relu", "a", "b"), node("Clip", "b low", "c"), node("Add", "c a", "d")]
    function = helper.make_function("local", "Cut", ["a", "low"], ["d"], body, opsets[:1])
    calls = [helper.make_node("Cut", ["x", "l"], ["m"], "one", domain="local")]
    calls.append(helper.make_node("Cut", ["m", ""], ["y"], "two", domain="local"))
    limit = numpy_helper.from_array(np.array(0.5, np.float32), "l")
    model = model_of(calls, initializers=[limit], functions=[function])
    model.opset_import.append(opsets[1])
    return model


def _old() -> onnx.ModelProto:
    nodes = [
        node("Add", "0 1", "2", broadcast=1, axis=1),
        node("PRelu", "2 1", "3"),
        node("Pad", "3", "4", pads=[0, 0, 1, 0, 0, 1], value=0.5),
        node("Upsample", "5", "6", height_scale=2.0, width_scale=1.0),
        node("Softmax", "6", "7"),
    ]
    nodes.insert(3, node("Unsqueeze", "4", "5", axes=[0]))
    inputs = [value("0", shape=(1, 3, 2)), value("1", shape=(3,))]
    return model_of(nodes, inputs, ["7"], [weight("1", 1, 2, 3)], opset=6, ir_version=3)


@cache
def models() -> Sequence[onnx.ModelProto]:
    """The models that are damaged, each of which is valid."""
    makers: Sequence[Callable[[], onnx.ModelProto]] = (
        *(_convolutional, _encoder, _recurrent, _quantized, _branching, _calling, _old),
        *(
            contrib_mutants.encoder,
            contrib_mutants.images,
            contrib_mutants.codes,
            contrib_mutants.decoder,
            contrib_mutants.experts,
        ),
    )
    return [maker() for maker in makers]


def mutant(seed: int) -> bytes:
    """A damaged model."""
    return mutated(models()[seed % len(models())], Random(seed))


def check(seed: int) -> bool:
    """Whether a mutant is accepted; raises where it is neither refused in one clean line nor allowed."""
    data = mutant(seed)
    if seed % 3:
        return check_source(data, seed)
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "weights.bin").write_bytes(bytes(range(256)))
        path = folder / "model.onnx"
        path.write_bytes(data)
        return check_source(path, seed)
    finally:
        shutil.rmtree(folder)


def check_source(source: bytes | Path, seed: int = 0) -> bool:
    """Whether a model is accepted; raises where it is neither refused in one clean line nor allowed."""
    try:
        import_model(source, strict=True).verify()
        if seed % COMPILED == 0:
            InferenceSession(source, cache=False, strict=True)
    except CompilerBugError:
        raise
    except GlowError as error:
        check_line(error)
        return False
    if reason := forbidden(source):
        raise WrongAcceptanceError(reason)
    return True


def check_line(error: GlowError) -> None:
    """Raise where an error is not one clean line."""
    line = str(error)
    if not error.reason or "\n" in line or "Traceback" in line:
        raise AssertionError(f"no clean error: {line!r}")


def forbidden(source: bytes | Path) -> str:
    """What the standard's checker says against a model; nothing where it allows it, apart from types of outputs."""
    model = onnx.load(source) if isinstance(source, Path) else onnx.load_model_from_string(source)
    if model.ir_version < 3:  # Which its inference does not know.
        return ""
    try:
        if isinstance(source, Path):
            model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
            checker.check_model(_completed(model))
        else:
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
            checker.check_model(_completed(model))
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        return " ".join(str(error).split())
    return ""


def _completed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a type for each output, which it may lack."""
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        graphs += [attribute.g for item in graph.node for attribute in item.attribute if attribute.HasField("g")]
        for output in graph.output:
            if output.type.WhichOneof("value") in (None, "tensor_type"):
                output.type.tensor_type.elem_type = output.type.tensor_type.elem_type or TensorProto.FLOAT
                output.type.tensor_type.shape.SetInParent()
    return model


def shown(seed: int) -> str:
    """A mutant as text, where it can be read at all."""
    try:
        return onnx.printer.to_text(onnx.load_model_from_string(mutant(seed)))
    except Exception as error:
        return f"{len(mutant(seed))} bytes: {error}"


def prepared() -> None:
    """Load what cases need, which takes longer than most of them."""
    check_source(models()[0].SerializeToString(), seed=0)


STAGES: Mapping[str, Fuzzer] = {"": Fuzzer(check, prepare=prepared, show=shown)}
"""The fuzzer of ONNX models."""
