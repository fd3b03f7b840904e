"""Values that a family writes as bare text: JSON by the tool's schema, where the text converts exactly."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pegmend.rawoutput.pythonvalue import NotPython, python_value

_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_KIND_OF_TYPE = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
# What people write who think in Python.
_ALIASES = {"str": "string", "bool": "boolean", "int": "integer", "float": "number", "list": "array", "dict": "object"}
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


def typed(text: str, schema: Mapping[str, Any] | None, root: Mapping[str, Any] | None = None) -> str:
    """Return a parameter's text as JSON.

    `schema` is the parameter's, None where nothing is known of it; `root` is what its `$ref`s point into. A string
    stays the text that stands there, whatever it looks like. A text that does not convert exactly to a declared type
    is a string too. Without a schema, exact JSON that is no string is taken as such.
    """
    root = root or {}
    if allows_only_text(schema, root):
        return quoted(text)
    kinds = _kinds(schema, root)
    stripped = text.strip()
    # Where a string is allowed too, Python's notation is one.
    candidates = [stripped] if not kinds or "string" in kinds else [stripped, _from_python(stripped)]
    for written in candidates:
        kind = _kind_of_json(written)
        if kind is not None and _is_allowed(kind, written, kinds):
            return written
    return quoted(text)


def allows(schema: Mapping[str, Any] | None, kind: str, root: Mapping[str, Any]) -> bool:
    """Whether a schema names this JSON type."""
    return kind in _kinds(schema, root)


def allows_only_text(schema: Mapping[str, Any] | None, root: Mapping[str, Any]) -> bool:
    """Whether a schema names strings and nothing else."""
    return _kinds(schema, root) == {"string"}


def member_schema(schema: Mapping[str, Any] | None, key: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of an object's member, None where the object's schema does not tell."""

    def pick(one: Mapping[str, Any]) -> Any:
        properties = one.get("properties")
        declared = properties.get(key) if isinstance(properties, Mapping) else None
        return declared if declared is not None else one.get("additionalProperties")

    return _inner(schema, root, pick)


def item_schema(schema: Mapping[str, Any] | None, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of an array's elements, None where the array's schema does not tell."""
    return _inner(schema, root, lambda one: one.get("items"))


def quoted(text: str) -> str:
    """Return a text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def json_object(members: Mapping[str, str]) -> str:
    """Return the JSON object with these members, whose values are JSON already."""
    return "{" + ", ".join(f"{quoted(key)}: {value}" for key, value in members.items()) + "}"


def is_strict_json(written: str) -> bool:
    """Whether a body may hold this JSON: no half of a surrogate pair, no number beyond all floats."""
    try:
        orjson.loads(written)
    except orjson.JSONDecodeError:
        return False
    return True


def escaped_controls(written: str) -> str:
    """Return JSON in which control characters in strings, which the engine lets pass, are escaped.

    The text may end amid a string.
    """
    if not _CONTROL_CHARACTER.search(written):
        return written
    return _STRING.sub(lambda string: _CONTROL_CHARACTER.sub(_escape, string.group()), written)


def _escape(control: re.Match[str]) -> str:
    return json.dumps(control.group())[1:-1]


def _kinds(schema: Any, root: Mapping[str, Any], seen: set[int] | None = None) -> frozenset[str]:
    """Return the JSON types that a schema allows; none at all where it does not say. `seen` is not looked at again."""
    seen = set() if seen is None else seen
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return frozenset()
    seen.add(id(schema))
    if isinstance(reference := schema.get("$ref"), str):
        return _kinds(_referred(reference, root), root, seen)
    declared = schema.get("type")
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list):
        return frozenset(_ALIASES.get(kind, kind) for kind in declared if isinstance(kind, str))
    kinds: set[str] = set()
    for alternative in _alternatives(schema):
        kinds |= _kinds(alternative, root, seen)
    values = [*_list(schema, "enum"), *([schema["const"]] if "const" in schema else [])]
    kinds |= {_KIND_OF_TYPE.get(type(value), "null") for value in values}
    return frozenset(kinds)


def _alternatives(schema: Mapping[str, Any]) -> list[Any]:
    return [alternative for key in _ALTERNATIVES for alternative in _list(schema, key)]


def _list(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _inner(
    schema: Any, root: Mapping[str, Any], pick: Callable[[Mapping[str, Any]], Any], seen: set[int] | None = None
) -> Mapping[str, Any] | None:
    """Return the first schema that `pick` finds in a schema, what it refers to, or its alternatives."""
    seen = set() if seen is None else seen
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return None
    seen.add(id(schema))
    if isinstance(reference := schema.get("$ref"), str):
        return _inner(_referred(reference, root), root, pick, seen)
    if isinstance(found := pick(schema), Mapping):
        return found
    for alternative in _alternatives(schema):
        if (found := _inner(alternative, root, pick, seen)) is not None:
            return found
    return None


def _referred(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a local reference (`#/$defs/Name`) points to."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _from_python(text: str) -> str:
    """Return a literal of Python, which templates print into the history, as JSON; "" where it is none."""
    try:
        written, end = python_value(text, 0)
    except NotPython:
        return ""
    return written if end == len(text) else ""


def _kind_of_json(text: str) -> str | None:
    """Return the type of exact JSON that is no string, None for any other text."""
    if text in ("true", "false"):
        return "boolean"
    if text == "null":
        return "null"
    if not is_strict_json(text):
        return None
    if _NUMBER.fullmatch(text):
        return "number"
    return {"{": "object", "[": "array"}.get(text[:1])


def _is_allowed(kind: str, written: str, kinds: frozenset[str]) -> bool:
    if not kinds or kind in kinds:
        return True
    return kind == "number" and "integer" in kinds and float(written).is_integer()
