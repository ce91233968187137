"""The map of ONNX's attributes and our properties says what the standard and the operators say, and leads back."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import AttributeProto, defs, helper
from onnx_models import model_of, node, value

from glow_mlir.frontends.onnx.export.exporter import exported_model
from glow_mlir.frontends.onnx.export.writer import OPSET
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.attribute_map import AttributeMap
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS, PLAIN_OPERATORS
from glow_mlir.ir.registry import EXPORTERS, IMPORTERS

MAPS: dict[str, AttributeMap] = {**{kind: row.attributes for kind, row in PLAIN_OPERATORS.items()}, **ATTRIBUTE_MAPS}
NEWEST = defs.onnx_opset_version()
TYPES: dict[Any, int] = {
    Node.flag: AttributeProto.INT,
    Node.float: AttributeProto.FLOAT,
    Node.int: AttributeProto.INT,
    Node.text: AttributeProto.STRING,
}
"""How an attribute is read → its type in ONNX."""


def plain(value: Any) -> Any:
    """A value of an attribute, a text where it is a string."""
    return value.decode() if isinstance(value, bytes) else value


def stated(kind: str, version: int = OPSET) -> dict[str, Any]:
    """Attribute → its default in the standard, `None` where it has to be given."""
    schema = defs.get_schema(kind, version)
    found: dict[str, Any] = {}
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        found[name] = plain(helper.get_attribute_value(default)) if default.name else None
    return found


@pytest.mark.parametrize("kind", MAPS)
def test_attributes_have_the_defaults_of_the_standard(kind: str) -> None:
    standard = stated(kind)
    for item in MAPS[kind].attributes:
        default = standard[item.name]
        assert default == (pytest.approx(item.default) if isinstance(item.default, float) else item.default)


@pytest.mark.parametrize("kind", MAPS)
def test_attributes_have_the_types_of_the_standard(kind: str) -> None:
    # Any: onnx's annotations lack the numbers of types.
    standard: Any = defs.get_schema(kind, OPSET).attributes
    for item in MAPS[kind].attributes:
        assert standard[item.name].type.value == TYPES[item.read]


@pytest.mark.parametrize("kind", PLAIN_OPERATORS)
def test_a_plain_operator_is_that_of_the_standard(kind: str) -> None:
    row = PLAIN_OPERATORS[kind]
    schema, definition = defs.get_schema(kind, OPSET), row.operator.get_irdl_definition()
    assert {item.name for item in row.attributes.attributes} == set(stated(kind, NEWEST))
    assert len(definition.operands) == len(schema.inputs)
    assert len(definition.results) == len(schema.outputs)
    assert {item.property for item in row.attributes.attributes} == set(definition.properties) - {
        "operandSegmentSizes",
        "to",
        "failure",
    }
    assert set(row.moved) <= {name for name, _ in definition.operands}


@pytest.mark.parametrize("kind", PLAIN_OPERATORS)
def test_a_plain_operator_has_the_form_since_the_standard_changed_it(kind: str) -> None:
    row = PLAIN_OPERATORS[kind]
    versions = {
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if schema.name == kind and schema.domain == "" and not schema.deprecated
    }
    assert row.since == 1 or row.since in versions
    assert ("", kind, row.since) in IMPORTERS.all()
    assert row.operator in EXPORTERS.all()


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("IsInf", {"detect_negative": 0, "detect_positive": 1}),
        ("Selu", {"alpha": 2.0, "gamma": 0.5}),
        ("ArgMax", {"axis": 1, "keepdims": 0, "select_last_index": 1}),
        ("Gelu", {"approximate": "tanh"}),
        ("Softmax", {"axis": 0}),
        ("LRN", {"size": 3, "alpha": 0.5, "beta": 0.25, "bias": 2.0}),
    ],
)
def test_attributes_come_back(kind: str, attributes: dict[str, Any]) -> None:
    model = model_of([node(kind, **attributes)], [value("x", shape=(2, 3, 4))], opset=OPSET)
    (found,) = (item for item in exported_model(import_model(model)).graph.node if item.op_type == kind)
    assert {item.name: plain(helper.get_attribute_value(item)) for item in found.attribute} == attributes
