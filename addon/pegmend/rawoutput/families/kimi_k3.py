"""Kimi K3: elements whose tags are made of control tokens.

    <|open|>response<|sep|>WORDS<|close|>response<|sep|><|open|>tools<|sep|>
    <|open|>call tool="NAME" index="1"<|sep|>
    <|open|>argument key="KEY" type="number"<|sep|>VALUE<|close|>argument<|sep|><|close|>call<|sep|>
    <|close|>tools<|sep|><|close|>message<|sep|>

without the line breaks. A value of type "string" is text, any other JSON.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.elements import Parameters, own_value
from pegmend.rawoutput.family import Family, Item, Tools, Words, by_grammar

_RESPONSE = re.compile(r"<\|open\|>\s*response\s*<\|sep\|>")
_RESPONSE_END = re.compile(r"<\|close\|>\s*response\s*<\|sep\|>|\Z")
_MESSAGE_END = re.compile(r"<\|close\|>\s*(?:message|response)\s*<\|sep\|>|<\|end_of_msg\|>")
_TOOLS = re.compile(r"<\|open\|>\s*tools\s*<\|sep\|>")
_TOOLS_END = re.compile(r"\s*<\|close\|>\s*tools\s*<\|sep\|>")
_CALL = re.compile(r'\s*<\|open\|>\s*call tool="(?P<name>[^"\n]{1,256})"[^<>\n]{0,80}<\|sep\|>')
_CALL_END = re.compile(r"\s*<\|close\|>\s*call\s*<\|sep\|>")
_ARGUMENT_TAG = re.compile(
    r'<\|open\|>\s*argument key="(?P<key>[^"\n]{1,256})"(?: type="(?P<type>\w{1,40})")?\s*<\|sep\|>'
)
_ARGUMENT = re.compile(rf"\s*{_ARGUMENT_TAG.pattern}")
# A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
_ARGUMENT_END = re.compile(
    r"<\|close\|>\s*argument\s*<\|sep\|>(?=\s*(?:<\|open\|>\s*argument key=|<\|close\|>\s*call\s*<\|sep\|>|\Z))"
)


def _response(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    if cursor.take(_RESPONSE):
        yield Words(cursor.until(_RESPONSE_END, "the end of the response"))
    cursor.take(_MESSAGE_END)


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_TOOLS, "tools")
    while call := cursor.take(_CALL):
        parameters = Parameters(tools, _unescaped(call["name"]))
        while argument := cursor.take(_ARGUMENT):
            value = own_value(cursor, _ARGUMENT_END, _ARGUMENT_TAG)
            if argument["type"] == "string":
                parameters.add_text(_unescaped(argument["key"]), value)
            else:
                parameters.add(_unescaped(argument["key"]), value)
        cursor.expect(_CALL_END, "the end of the call")
        yield parameters.call()
    cursor.expect(_TOOLS_END, "the end of the tools")


def _unescaped(attribute: str) -> str:
    return attribute.replace("&quot;", '"').replace("&amp;", "&")


RESPONSE = Family(
    "kimi_k3_response",
    r"<\|open\|>\s*response\s*<\|sep\|> | <\|close\|>\s*(?:message|response)\s*<\|sep\|> | <\|end_of_msg\|>",
    by_grammar(_response, may_be_empty=True),
    ends_reasoning=True,
    needs_tools=False,
)
TOOLS = Family("kimi_k3", r"<\|open\|>\s*tools\s*<\|sep\|>", by_grammar(_calls), ends_reasoning=True)
