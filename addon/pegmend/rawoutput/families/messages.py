"""gpt-oss (Harmony), LLM-jp 4.1, Muse, beam: a turn is a row of messages, and the header of one says who it is for.

    <|start|>assistant to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>{json}<|call|>     gpt-oss
    <|start|>assistant to=NAME<|message|><atem:function_calls>...</atem:function_calls><|eom|>               Muse
    <|start|>assistant to=NAME<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter ...>...<|call|>  beam

The first `<|start|>assistant` stands in the prompt, and the recipient may stand behind the channel. A message without a
tool as recipient is words, or thoughts on the channel "analysis" and to "self".
"""

import re
from collections.abc import Iterator

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor, Cut, Malformed
from pegmend.rawoutput.families.elements import Invocation, Parameters, own_value
from pegmend.rawoutput.family import Family, Item, Problem, Thought, Tools, Words, by_grammar, undeclared
from pegmend.rawoutput.quotes import find_unquoted
from pegmend.turn import ToolCall

_HEADER = re.compile(
    r"\s*+(?:<\|start\|>\s*+)?(?:assistant)?(?P<before>[^<>]{0,300})"
    r"(?:<\|channel\|>\s*(?P<channel>\w{1,40})(?P<after>[^<>]{0,300}))?"
    r"(?:<\|channel\|>\s*(?P<second>\w{1,40})[^<>]{0,300})?"
    r"(?:<\|constrain\|>\s*(?P<notation>\w{0,40})[^<>]{0,80})?<\|message\|>"
)
_RECIPIENT = re.compile(r"\bto=([^\s<>]{1,256})")
_LAST = r"<\|(?:end|call|return|eom|eot)\|>"
_CHANNEL = r"<\|channel\|>\s*\w{1,40}[^<>]{0,300}(?:<\|constrain\|>[^<>]{0,80})?<\|message\|>"
# A token ends a message where another one begins behind it: thoughts may tell of tokens.
_END = re.compile(
    rf"{_LAST}(?:\s*<\|start\|>\s*\Z|\s*assistant(?={_CHANNEL})|(?=\s*(?:<\|start\|>|[^<>]{{0,300}}{_CHANNEL}|\Z)))"
    rf"|(?=<\|start\|>\s*assistant)|(?={_CHANNEL})|\Z"
)
_CALL_END = re.compile(rf"\s*(?:{_LAST}(?:\s*<\|start\|>\s*\Z)?|(?=<\|start\|>)|\Z)")
_LAST_TOKEN = re.compile(_LAST)
_MAY_BE_CALL = re.compile(r"\bto=|[{\[]|<tool_call>|<function=")
_NOBODY = ("user", "assistant", "self", "commentary", "all")
_OBJECT = re.compile(r"\s*+\{.*\}\s*", re.DOTALL)
_JSON = re.compile(r"\s*(?=\{)")
_ATEM = re.compile(r"\s*<atem:function_calls>")
_ATEM_END = re.compile(r"\s*</atem:function_calls>")
_INVOKE = Invocation("atem:invoke", "atem:parameter")
_RFL_TAG = re.compile(r'<rfl:parameter name="(?P<name>[^"<>\n]{1,256})">\n?')
_RFL = re.compile(rf"\s*{_RFL_TAG.pattern}")
_RFL_END = re.compile(r"\n?</rfl:parameter>(?=\s*(?:<rfl:parameter |<\||\Z))")


def _message(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    header = cursor.expect(_HEADER, "a message")
    recipient = _RECIPIENT.search(f"{header['before']} {header['after'] or ''}")
    name = recipient[1] if recipient else "user"
    if recipient and name in _NOBODY and name in tools:
        raise Problem(Ambiguous, f"A message to {name!r} may be a call of the tool with that name.")
    channel = header["second"] or header["channel"]
    if name not in _NOBODY:
        name = name.removeprefix("functions.")
        if name not in tools:
            raise undeclared(name, tools)
        yield from _calls(cursor, name, tools, is_xml=header["notation"] == "xml")
        cursor.expect(_CALL_END, "the end of the message")
        return
    if channel == "commentary" and header["notation"]:
        raise Malformed("a call has no recipient")
    start = cursor.position
    text = cursor.until(_END, "the end of the message")
    is_called = cursor.text.startswith("<|call|>", start + len(text)) or _OBJECT.fullmatch(text)
    if is_called and channel == "commentary":
        raise Malformed("a call has no recipient")
    if channel == "analysis" or name == "self":
        yield from _thoughts(text)
    else:
        yield Words(text)


def _thoughts(text: str) -> Iterator[Item]:
    """Yield thoughts, and the words that stand behind a token which should have ended them."""
    token = find_unquoted(_LAST_TOKEN, text)
    behind = text[token.end() :] if token else ""
    if _MAY_BE_CALL.search(behind):
        raise Problem(Ambiguous, "What may be a call stands behind the end of thoughts without a message of its own.")
    if token and token.group() == "<|end|>":
        yield Thought(text[: token.start()])
        yield Words(behind)
    else:
        yield Thought(text)


def _calls(cursor: Cursor, name: str, tools: Tools, *, is_xml: bool) -> Iterator[ToolCall]:
    if cursor.take(_ATEM):
        yield from _INVOKE.calls(cursor, tools)
        cursor.expect(_ATEM_END, "</atem:function_calls>")
    elif is_xml:
        parameters = Parameters(tools, name)
        while parameter := cursor.take(_RFL):
            parameters.add(parameter["name"], own_value(cursor, _RFL_END, _RFL_TAG))
        if not _CALL_END.match(cursor.text, cursor.position):
            raise cursor.failure("the end of the message")
        if cursor.truncated and cursor.at_end:
            raise Cut("another parameter, or the end of the message")
        yield parameters.call()
    else:
        cursor.take(_JSON)
        yield ToolCall(name, cursor.json_object())


FAMILY = Family(
    "messages",
    r"""<\|start\|>\s*assistant[^<>]{0,300}<\|(?:channel|message)\|> | <\|channel\|>\s*(?:analysis|commentary|final)\b
    | (?:\A\s*|<\|start\|>)(?:assistant\s+)?to=[^\s<>]{1,256}\s*<\|(?:channel|message)\|> | \A\s*<\|message\|>""",
    by_grammar(_message),
    needs_tools=False,
)
