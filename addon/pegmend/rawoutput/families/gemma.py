"""Gemma 4 and FunctionGemma: an object notation of their own.

    <|tool_call>call:NAME{key:<|"|>text<|"|>,n:3,o:{a:[1]}}<tool_call|>
    <start_function_call>call:NAME{key:<escape>text<escape>,n:3}<end_function_call>

Keys are bare, strings stand between a token and the same token again, with nothing escaped in them. A bare word that is no
number and no literal is a string.
"""

import re
from collections.abc import Iterator

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor, Malformed
from pegmend.rawoutput.family import Family, Item, Problem, Tools, by_grammar
from pegmend.rawoutput.values import json_object, quoted
from pegmend.turn import ToolCall

_CALL = re.compile(r"\s*(?:<\|tool_call>|<start_function_call>)\s*call:(?P<name>[^\s{}<>]{1,256})\s*(?=\{)")
_CALL_END = re.compile(r"\s*(?:<tool_call\|>|<end_function_call>|(?=<\|tool_response>)|\Z)")
_QUOTE = re.compile(r'<\|"\|>|<escape>')
_QUOTES = {'<|"|>': re.compile(r'<\|"\|>'), "<escape>": re.compile(r"<escape>")}
_KEY = re.compile(
    r'\s*(?:<\|"\|>(?P<quoted>[^<>]{1,256})<\|"\|>|(?P<bare>[^\s:,{}\[\]<>"\'][^:,{}\[\]<>"\'\n]{0,255}))\s*:'
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?=\s*[,}\]])")
_LITERAL = re.compile(r"(?:true|false|null)(?=\s*[,}\]])")
_BARE = re.compile(r"[^\s,:{}\[\]<>\"'][^,{}\[\]<>\"'\n]{0,1000}(?=[,}\]])")
_OPEN = {"{": "}", "[": "]"}
_COMMA = re.compile(r"\s*,")
_MAX_DEPTH = 100


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    while call := cursor.take(_CALL):
        arguments = _container(cursor, 0)
        cursor.expect(_CALL_END, "the end of the call")
        yield ToolCall(call["name"], arguments)


def _value(cursor: Cursor, depth: int) -> str:
    cursor.skip_space()
    if quote := cursor.take(_QUOTE):
        return quoted(cursor.until(_QUOTES[quote.group()], "the end of a string"))
    if exact := cursor.take(_NUMBER) or cursor.take(_LITERAL):
        return exact.group()
    if cursor.text[cursor.position : cursor.position + 1] in _OPEN:
        return _container(cursor, depth + 1)
    return quoted(cursor.expect(_BARE, "a value").group().strip())


def _container(cursor: Cursor, depth: int) -> str:
    """Read an object or an array."""
    if depth > _MAX_DEPTH:
        raise Malformed("a value nests too deep")
    opening = cursor.text[cursor.position]
    cursor.position += 1
    closing = re.compile(rf"\s*\{_OPEN[opening]}")
    members: dict[str, str] = {}
    while not cursor.take(closing):
        if members:
            cursor.expect(_COMMA, "a comma")
        if opening == "{":
            found = cursor.expect(_KEY, "a key")
            key = (found["quoted"] or found["bare"]).rstrip()
        else:
            key = str(len(members))
        if key in members:
            raise Problem(Ambiguous, f"An object in a call has the member {key!r} twice.")
        members[key] = _value(cursor, depth)
    return json_object(members) if opening == "{" else "[" + ", ".join(members.values()) + "]"


FAMILY = Family("gemma", r"<\|tool_call>\s*call: | <start_function_call>\s*call:", by_grammar(_calls))
