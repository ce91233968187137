"""Damage to ONNX models of the kinds that programs, hands and disks do to them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import onnx
from onnx import TensorProto, helper

NUMBERS = (0, 1, -1, 2, 3, 7, 1 << 20, 1 << 31, (1 << 63) - 1, -(1 << 63))
KINDS = (0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 22, 99)
NAMES = ("", "x", "y", "nowhere", "0", "a b", "\0", "é", "../x", "x" * 300)
ATTRIBUTES = (
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "kernel_shape",
    "group",
    "to",
    "alpha",
    "mode",
    "value",
    "nothing",
)
OPERATORS = ("Relu", "Add", "Conv", "Concat", "Reshape", "Gemm", "MaxPool", "Gelu", "Loop", "If", "Constant", "Nothing")
DOMAINS = ("", "ai.onnx.ml", "com.microsoft", "nowhere")
LOCATIONS = ("", ".", "..", "../weights.bin", "/etc/passwd", "weights.bin", "\0", "a/../../b", "x" * 5000)


def mutated(model: onnx.ModelProto, random: Random) -> bytes:
    """A serialized model with one change, now and then with two or three, of its messages or of its bytes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choices(CHANGES, WEIGHTS)[0](copy, random)
    data = copy.SerializeToString()
    return random.choice(DAMAGES)(data, random) if random.random() < 0.15 else data


# ---- where


def _graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [graph, *(found for item in inner for found in _graphs(item))]


def _graph(model: onnx.ModelProto, random: Random) -> onnx.GraphProto:
    return random.choice(_graphs(model.graph))


def _node(model: onnx.ModelProto, random: Random) -> onnx.NodeProto:
    nodes = list(_graph(model, random).node) + [node for item in model.functions for node in item.node]
    return random.choice(nodes or [onnx.NodeProto()])


def _value(model: onnx.ModelProto, random: Random) -> onnx.ValueInfoProto:
    graph = _graph(model, random)
    return random.choice([*graph.input, *graph.output, *graph.value_info] or [onnx.ValueInfoProto()])


def _tensor(model: onnx.ModelProto, random: Random) -> onnx.TensorProto:
    constants = [a.t for node in model.graph.node for a in node.attribute if a.HasField("t")]
    return random.choice([*model.graph.initializer, *constants] or [onnx.TensorProto()])


def _names(model: onnx.ModelProto) -> list[str]:
    return [name for node in model.graph.node for name in (*node.input, *node.output)]


# ---- changes of messages


def _operand(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    name = random.choice([*_names(model), *NAMES])
    if node.input and random.random() < 0.7:
        node.input[random.randrange(len(node.input))] = name
    elif node.input and random.random() < 0.5:
        del node.input[random.randrange(len(node.input))]
    else:
        node.input.append(name)


def _result(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    name = random.choice([*_names(model), *NAMES, "fresh"])
    if node.output and random.random() < 0.6:
        node.output[random.randrange(len(node.output))] = name
    else:
        node.output.append(name)


def _operator(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    node.op_type = random.choice([*OPERATORS, *(other.op_type for other in model.graph.node)])
    if random.random() < 0.2:
        node.domain = random.choice(DOMAINS)


def _attribute(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    numbers = [random.choice(NUMBERS) for _ in range(3)]
    value = random.choice((numbers[0], 0.5, "word", numbers, [0.5], ["a"]))
    name = random.choice([*ATTRIBUTES, *(attribute.name for attribute in node.attribute)])
    made = helper.make_attribute(name, value)
    if node.attribute and random.random() < 0.7:
        node.attribute[random.randrange(len(node.attribute))].CopyFrom(made)
    else:
        node.attribute.append(made)


def _attribute_number(model: onnx.ModelProto, random: Random) -> None:
    given = [a for a in _node(model, random).attribute if a.ints or a.type in (1, 2)]
    for attribute in given[:1]:
        number = random.choice(NUMBERS)
        if attribute.ints and random.random() < 0.8:
            attribute.ints[random.randrange(len(attribute.ints))] = number
        elif attribute.ints:
            attribute.ints.append(number)
        elif attribute.type == onnx.AttributeProto.INT:
            attribute.i = number
        else:
            attribute.f = random.choice((0.0, -1.0, 1e38, float("inf"), float("nan")))


def _attribute_kind(model: onnx.ModelProto, random: Random) -> None:
    for attribute in list(_node(model, random).attribute)[:1]:
        attribute.type = random.randrange(15)  # pyright: ignore[reportAttributeAccessIssue]


def _attribute_gone(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    if node.attribute:
        del node.attribute[random.randrange(len(node.attribute))]


def _attribute_twice(model: onnx.ModelProto, random: Random) -> None:
    node = _node(model, random)
    if node.attribute:
        node.attribute.append(random.choice(list(node.attribute)))


def _dimension(model: onnx.ModelProto, random: Random) -> None:
    described = _value(model, random).type.tensor_type
    if described.shape.dim and random.random() < 0.8:
        random.choice(list(described.shape.dim)).dim_value = random.choice(NUMBERS)
    elif random.random() < 0.5:
        described.shape.dim.add(dim_value=random.choice(NUMBERS))
    else:
        described.ClearField("shape")


def _element(model: onnx.ModelProto, random: Random) -> None:
    _value(model, random).type.tensor_type.elem_type = random.choice(KINDS)


def _value_name(model: onnx.ModelProto, random: Random) -> None:
    _value(model, random).name = random.choice([*_names(model), *NAMES])


def _value_repeated(model: onnx.ModelProto, random: Random) -> None:
    graph = _graph(model, random)
    side = random.choice((graph.input, graph.output, graph.value_info))
    if side:
        side.append(random.choice(list(side)))


def _value_gone(model: onnx.ModelProto, random: Random) -> None:
    graph = _graph(model, random)
    side = random.choice((graph.input, graph.output, graph.initializer))
    if side:
        del side[random.randrange(len(side))]


def _weight_size(model: onnx.ModelProto, random: Random) -> None:
    tensor = _tensor(model, random)
    if tensor.dims and random.random() < 0.8:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(NUMBERS)
    else:
        tensor.dims.append(random.choice(NUMBERS))


def _weight_kind(model: onnx.ModelProto, random: Random) -> None:
    _tensor(model, random).data_type = random.choice(KINDS)


def _weight_content(model: onnx.ModelProto, random: Random) -> None:
    tensor = _tensor(model, random)
    if random.random() < 0.5:
        tensor.raw_data = tensor.raw_data[: random.randrange(len(tensor.raw_data) + 1)]
    else:
        tensor.float_data.append(0.5)


def _weight_elsewhere(model: onnx.ModelProto, random: Random) -> None:
    tensor = _tensor(model, random)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=random.choice(LOCATIONS))
    for key in ("offset", "length"):
        if random.random() < 0.7:
            tensor.external_data.add(key=key, value=str(random.choice((*NUMBERS, "none", "1.5", "", 1 << 70))))


def _node_gone(model: onnx.ModelProto, random: Random) -> None:
    graph = _graph(model, random)
    if graph.node:
        del graph.node[random.randrange(len(graph.node))]


def _node_repeated(model: onnx.ModelProto, random: Random) -> None:
    graph = _graph(model, random)
    if graph.node:
        graph.node.append(random.choice(list(graph.node)))


def _nodes_swapped(model: onnx.ModelProto, random: Random) -> None:
    graph = _graph(model, random)
    order = list(graph.node)
    if len(order) > 1:
        one, other = random.sample(range(len(order)), 2)
        order[one], order[other] = order[other], order[one]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
        del graph.node[:]
        graph.node.extend(copies)


def _cycle(model: onnx.ModelProto, random: Random) -> None:
    nodes = [node for node in model.graph.node if node.input and node.output]
    if nodes:
        late = random.randrange(len(nodes))
        nodes[random.randrange(late + 1)].input[0] = nodes[late].output[0]


def _nested(model: onnx.ModelProto, random: Random) -> None:
    """Wrap a node's result into branches within branches."""
    name, inner = f"nested{random.randrange(9)}", helper.make_graph([], "leaf", [], [])
    inner.node.append(helper.make_node("Identity", [random.choice(_names(model) or ["x"])], [name]))
    inner.output.append(onnx.ValueInfoProto(name=name))
    for depth in range(random.choice((1, 3, 10, 28))):
        result = f"{name}.{depth}"
        node = helper.make_node("If", ["flag"], [result], then_branch=inner, else_branch=inner) if depth < 3 else None
        node = node or helper.make_node("If", ["flag"], [result], then_branch=inner)
        inner = helper.make_graph([node], "branch", [], [onnx.ValueInfoProto(name=result)])
    model.graph.node.extend(inner.node)
    model.graph.initializer.append(helper.make_tensor("flag", TensorProto.BOOL, [], [1]))
    model.graph.output.append(onnx.ValueInfoProto(name=inner.output[0].name))


def _function(model: onnx.ModelProto, random: Random) -> None:
    """Functions that call one another, now and then themselves."""
    depth = random.choice((1, 4, 30))
    opsets = [helper.make_opsetid("", model.opset_import[0].version if model.opset_import else 18)]
    opsets.append(helper.make_opsetid("deep", 1))
    for level in range(depth):
        called = f"f{level + 1}" if level + 1 < depth else random.choice(("f0", "Relu", "Neg"))
        domain = "deep" if called.startswith("f") else ""
        body = [helper.make_node(called, [one], [other], domain=domain) for one, other in ("am", "mb")]
        model.functions.append(helper.make_function("deep", f"f{level}", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("deep", 1))
    source = random.choice(_names(model) or ["x"])
    model.graph.node.append(helper.make_node("f0", [source], ["deep"], domain="deep"))
    model.graph.output.append(onnx.ValueInfoProto(name="deep"))


def _opset(model: onnx.ModelProto, random: Random) -> None:
    version = random.choice((*range(1, 28), 0, -1, 999, 1 << 40))
    if model.opset_import and random.random() < 0.7:
        model.opset_import[0].version = version
    else:
        model.opset_import.append(helper.make_opsetid(random.choice(DOMAINS), version))


def _ir_version(model: onnx.ModelProto, random: Random) -> None:
    model.ir_version = random.choice((*range(1, 15), 0, -1, 9999))


Change = Callable[[onnx.ModelProto, Random], None]
MUTATIONS: tuple[tuple[Change, int], ...] = (
    (_operand, 10),
    (_result, 6),
    (_operator, 8),
    (_attribute, 8),
    (_attribute_number, 12),
    (_attribute_kind, 3),
    (_attribute_gone, 4),
    (_attribute_twice, 2),
    (_dimension, 12),
    (_element, 8),
    (_value_name, 4),
    (_value_repeated, 2),
    (_value_gone, 4),
    (_weight_size, 8),
    (_weight_kind, 5),
    (_weight_content, 4),
    (_weight_elsewhere, 4),
    (_node_gone, 4),
    (_node_repeated, 3),
    (_nodes_swapped, 3),
    (_cycle, 3),
    (_nested, 2),
    (_function, 2),
    (_opset, 6),
    (_ir_version, 2),
)
"""The kinds of changes, and how often each is made."""

CHANGES = [change for change, _ in MUTATIONS]
WEIGHTS = [weight for _, weight in MUTATIONS]


# ---- damage to bytes


def _truncated(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _flipped(data: bytes, random: Random) -> bytes:
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 4)) if found else 0):
        found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def _spliced(data: bytes, random: Random) -> bytes:
    begin, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    place = random.randrange(len(data) + 1)
    return data[:place] + data[begin:end] + data[place:]


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (_truncated, _flipped, _flipped, _flipped, _spliced)
