"""Bare text and a schema -> JSON, as a table."""

from typing import Any

import pytest

from pegmend.rawoutput.values import item_schema, member_schema, typed

DEFS = {"Count": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}, "a/b": {"type": "boolean"}}
LOOPS: dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/Loops"}] * 45}


@pytest.mark.parametrize(
    ("text", "schema", "json"),
    [
        ("12", {"type": "string"}, '"12"'),
        ("null", {"type": "string"}, '"null"'),
        ("[1]", {"type": "string"}, '"[1]"'),
        ("12", {"type": "integer"}, "12"),
        (" 12 ", {"type": "integer"}, "12"),
        ("12.0", {"type": "integer"}, "12.0"),
        ("12.5", {"type": "integer"}, '"12.5"'),
        ("12.5", {"type": "number"}, "12.5"),
        ("1e3", {"type": "number"}, "1e3"),
        ("1e999", {"type": "number"}, '"1e999"'),
        ("012", {"type": "integer"}, '"012"'),
        ("9223372036854775808", {"type": "integer"}, "9223372036854775808"),
        ("true", {"type": "boolean"}, "true"),
        ("True", {"type": "boolean"}, "true"),
        ("yes", {"type": "boolean"}, '"yes"'),
        ("None", {"type": ["integer", "null"]}, "null"),
        ("[1, 2]", {"type": "array"}, "[1, 2]"),
        ("{'a': True}", {"type": "object"}, '{"a": true}'),
        ("[1, 2]", {"type": "object"}, '"[1, 2]"'),
        ("a few", {"type": "integer"}, '"a few"'),
        ("5", {"type": ["string", "integer"]}, "5"),
        ("2 dollars", {"type": ["string", "integer"]}, '"2 dollars"'),
        ("3", {"type": "int"}, "3"),
        ("3", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "3"),
        ("3", {"oneOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]}, "3"),
        ("true", {"$ref": "#/$defs/a~1b"}, "true"),
        ("x", {"$ref": "#/$defs/Loop"}, '"x"'),
        ("3", {"$ref": "#/$defs/Missing"}, "3"),
        ("3", {"$ref": "other.json"}, "3"),
        ("b", {"enum": ["a", "b"]}, '"b"'),
        ("2", {"enum": [1, 2]}, "2"),
        ("2", {"const": "2"}, '"2"'),
        ("3", {}, "3"),
        ("3", None, "3"),
        ("three", None, '"three"'),
        ('"three"', None, '"\\"three\\""'),
        ("{a}", None, '"{a}"'),
        ("3", {"type": 1}, "3"),
        ("3", LOOPS, "3"),
    ],
)
def test_typed(text: str, schema: Any, json: str) -> None:
    assert typed(text, schema, {"$defs": {**DEFS, "Loops": LOOPS}}) == json


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"properties": {"a": {"type": "null"}}}, {"type": "null"}),
        ({"additionalProperties": {"type": "null"}}, {"type": "null"}),
        ({"allOf": [{"type": "object"}, {"properties": {"a": {}}}]}, {}),
        ({"$ref": "#/$defs/O"}, {"type": "boolean"}),
        ({"properties": [1]}, None),
        ({"properties": {"a": True}}, None),
        (True, None),
    ],
)
def test_member_schema(schema: Any, found: Any) -> None:
    assert member_schema(schema, "a", {"$defs": {"O": {"properties": {"a": {"type": "boolean"}}}}}) == found


def test_item_schema() -> None:
    assert item_schema({"anyOf": [{"type": "null"}, {"items": {"type": "integer"}}]}, {}) == {"type": "integer"}
    assert item_schema({"items": [{}]}, {}) is None
