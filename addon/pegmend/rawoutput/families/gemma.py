"""Gemma 4 and FunctionGemma: an object notation of their own.

    <|tool_call>call:NAME{key:<|"|>text<|"|>,n:3,o:{a:[1]}}<tool_call|>
    <start_function_call>call:NAME{key:<escape>text<escape>,n:3}<end_function_call>

Keys are bare, strings stand between a token and the same token again, with nothing escaped in them. A bare word that is
no number and no literal is a string.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor, Malformed
from pegmend.rawoutput.families.elements import Parameters
from pegmend.rawoutput.family import Family, Item, Problem, Tools, by_grammar
from pegmend.rawoutput.values import json_object, quoted, typed

_CALL = re.compile(r"\s*(?:<\|tool_call>|<start_function_call>)\s*call:(?P<name>[^\s{}<>]{1,256})\s*(?=\{)")
_CALL_END = re.compile(r"\s*(?:<tool_call\|>|<end_function_call>|(?=<\|tool_response>)|\Z)")
_QUOTE = re.compile(r'<\|"\|>|<escape>')
_QUOTES = {'<|"|>': re.compile(r'<\|"\|>'), "<escape>": re.compile(r"<escape>")}
_KEY = re.compile(
    r'\s*(?:<\|"\|>(?P<quoted>[^<>]{1,256})<\|"\|>|(?P<bare>[^\s:,{}\[\]<>"\'][^:,{}\[\]<>"\'\n]{0,255}))\s*:'
)
_BARE = re.compile(r"[^\s,:{}\[\]<>\"'][^,{}\[\]<>\"'\n]{0,1000}(?=[,}\]])")
_OBJECT_END = re.compile(r"\s*\}")
_ARRAY_END = re.compile(r"\s*\]")
_COMMA = re.compile(r"\s*,")
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Bare:
    """A value that is written as bare text."""

    text: str


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    while call := cursor.take(_CALL):
        parameters = Parameters(tools, call["name"])
        for key, value in _members(cursor, 0):
            if isinstance(value, Bare):
                parameters.add(key, value.text)
            else:
                parameters.add_json(key, value)
        cursor.expect(_CALL_END, "the end of the call")
        yield parameters.call()


def _value(cursor: Cursor, depth: int) -> str | Bare:
    """Read a value: JSON, or a bare word whose type the schema may tell."""
    if depth > _MAX_DEPTH:
        raise Malformed("a value nests too deep")
    cursor.skip_space()
    if quote := cursor.take(_QUOTE):
        return quoted(cursor.until(_QUOTES[quote.group()], "the end of a string"))
    opening = cursor.text[cursor.position : cursor.position + 1]
    if opening == "{":
        return json_object({key: _as_json(value) for key, value in _members(cursor, depth + 1)})
    if opening == "[":
        return "[" + ", ".join(_as_json(value) for value in _elements(cursor, depth + 1)) + "]"
    return Bare(cursor.expect(_BARE, "a value").group().strip())


def _members(cursor: Cursor, depth: int) -> Iterator[tuple[str, str | Bare]]:
    """Read an object, and yield its members."""
    cursor.position += 1
    keys: set[str] = set()
    while not cursor.take(_OBJECT_END):
        if keys:
            cursor.expect(_COMMA, "a comma")
        found = cursor.expect(_KEY, "a key")
        key = found["quoted"] or found["bare"].rstrip()
        if key in keys:
            raise Problem(Ambiguous, f"An object in a call has the member {key!r} twice.")
        keys.add(key)
        yield key, _value(cursor, depth)


def _elements(cursor: Cursor, depth: int) -> Iterator[str | Bare]:
    """Read an array, and yield its elements."""
    cursor.position += 1
    is_first = True
    while not cursor.take(_ARRAY_END):
        if not is_first:
            cursor.expect(_COMMA, "a comma")
        is_first = False
        yield _value(cursor, depth)


def _as_json(value: str | Bare) -> str:
    return typed(value.text, None) if isinstance(value, Bare) else value


FAMILY = Family("gemma", r"<\|tool_call>\s*call: | <start_function_call>\s*call:", by_grammar(_calls))
