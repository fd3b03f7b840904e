"""Inkling: messages whose first token tells what they are.

    <|message_model|><|content_invoke_tool_json|>{"name": "NAME", "args": {...}}<|end_message|>

Besides there are `<|content_thinking|>`, `<|content_text|>` and a few others that hold words.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.json_calls import json_calls
from pegmend.rawoutput.family import Family, Item, Thought, Tools, Words, by_grammar

_MESSAGE = re.compile(r"(?:<\|message_model\|>)?<\|content_(?P<kind>\w{1,40})\|>")
_END = re.compile(r"<\|end_message\|>|(?=(?:<\|message_model\|>)?<\|content_)|\Z")
_CALL_END = re.compile(r"\s*(?:<\|end_message\|>|\Z)")


def _message(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    message = cursor.expect(_MESSAGE, "a message")
    if message["kind"] == "invoke_tool_json":
        yield from json_calls(cursor, "name", "args")
        cursor.expect(_CALL_END, "<|end_message|>")
        return
    text = cursor.until(_END, "the end of the message")
    yield Thought(text) if message["kind"] == "thinking" else Words(text)


FAMILY = Family("inkling", r"(?:<\|message_model\|>)?<\|content_\w{1,40}\|>", by_grammar(_message), needs_tools=False)
