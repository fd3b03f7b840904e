"""Calls in the notation of Python: Llama 4, LFM2, OLMo 3, ToolACE.

    [NAME(key="text", n=3), NAME()]                                        bare, where the names are declared
    <|python_start|>[...]<|python_end|>                                    Llama 4
    <|tool_call_start|>[...]<|tool_call_end|>                              LFM2
    <|python_tag|>NAME.call(key="text")                                    Llama 3's built-in tools
    <function_calls>                                                       OLMo 3
    NAME(key="text")
    NAME()
    </function_calls>

JSON's literals are taken as well as Python's. LFM2's template prints strings without escaping the quotes in them, so
that their ends cannot be told: only in a call with nothing but such a string in it is the last quote the end.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor, Cut, Malformed, NoCall
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.rawoutput.pythonvalue import NotPython, python_arguments
from pegmend.rawoutput.values import json_object, quoted
from pegmend.turn import ToolCall

_NAME = r"[^\W\d][\w.-]{0,255}"
_CALL = re.compile(rf"\s*(?P<name>{_NAME})\s*\(")
_OPEN = re.compile(r"<\|python_start\|>|<\|tool_call_start\|>|<function_calls>")
_PYTHON_TAG = re.compile(r"<\|python_tag\|>")
_NEXT_BUILTIN = re.compile(rf"\s*+(?:<\|python_tag\|>|[;,]|(?<=\n))\s*+(?={_NAME}\.call\()")
_OTHER_FORMAT = re.compile(r"\s*+(?:\[?\s*+\{|<invoke\b)")
_LIST = re.compile(r"\s*\[")
_LIST_END = re.compile(r"\s*+(?:,\s*+)?\]")
_ONLY_STRING = re.compile(
    rf"\s*\[\s*(?P<name>{_NAME})\s*\(\s*(?P<key>[^\W\d]\w*)\s*=\s*(?P<quote>['\"])(?!(?P=quote){{2}})"
    r"(?P<value>(?:(?!<\|(?:tool_call_start|tool_call_end|python_end)\|>).)*)(?P=quote)\s*\)\s*\]\s*"
    r"(?=<\|tool_call_end\|>)",
    re.DOTALL,
)
# What is an expression of Python as a whole: strings side by side, or with operators between them and other values.
_STRING = r"""(?:'[^']*+'|"[^"]*+")(?:\.\w++\([^()]*+\))*+"""
_OPERAND = rf"(?:{_STRING}|\w++(?:\.\w++|\([^()'\"]*+\)|\[[^\[\]'\"]*+\])*+)"
_EXPRESSION = re.compile(
    rf"{_STRING}(?:\s*(?:[-+/%]|==|!=)\s*{_OPERAND}|\s*\*\s*\d++|\s+(?:and|or|in|if|else|is|not)\s+{_OPERAND}|\s+{_STRING})+\s*"
)
_ESCAPED = re.compile(r"\\['\"\\abfnrtvxuU0-7]")
# In a value that ends with a quote: where the string may have ended, and another argument or call may have begun.
_MORE = re.compile(rf"['\"]\s*(?:,\s*[^\W\d]\w*\s*=|\)\s*,\s*{_NAME}\s*\()")
_LINE_END = re.compile(r"(?=[^\W\d_])|[ \t]*(?:\n|<\||</(?:s|(?:\w{1,20}:)?think\w*)>|\[/THINK\]|;|\Z)")
_TEXT_END = re.compile(r"\s*(?:<\||\Z)")
_COMMA = re.compile(r"\s*,")
_CLOSE = re.compile(r"(?:\s*(?:<\|python_end\|>|<\|tool_call_end\|>|</function_calls>))+")


def _marked(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_OPEN, "the section")
    if _OTHER_FORMAT.match(cursor.text, cursor.position):
        raise NoCall  # JSON or elements between these tokens, for another family
    if only := _only_string(cursor):
        yield only
    elif cursor.take(_LIST):
        yield from _listed(cursor)
    else:
        while not cursor.at_end and (call := _call(cursor)):
            yield call
    if not cursor.take(_CLOSE) and not cursor.at_end:
        raise Malformed(f"the end of the section is missing at character {cursor.position}")


def _only_string(cursor: Cursor) -> ToolCall | None:
    """Go over a call whose only argument is a string with quotes that nothing escapes, and return it."""
    found = _ONLY_STRING.match(cursor.text, cursor.position)
    if found is None or found["quote"] not in found["value"]:
        return None
    if _ESCAPED.search(found["value"]) or _MORE.search(found["value"]):
        return None
    if _EXPRESSION.fullmatch(f"{found['quote']}{found['value']}{found['quote']}"):
        return None
    cursor.position = found.end()
    return ToolCall(found["name"], json_object({found["key"]: quoted(found["value"])}))


def _builtin(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    """Read calls with `.call`; without their token they are known by a declared name, where the text holds no more."""
    is_marked = cursor.take(_PYTHON_TAG)
    first = _CALL.match(cursor.text, cursor.position)
    if not is_marked and (first is None or first["name"].removesuffix(".call") not in tools):
        raise NoCall
    while call := _call(cursor):
        yield ToolCall(call.name.removesuffix(".call"), call.arguments)
        if not cursor.take(_NEXT_BUILTIN):
            break
    if not is_marked and not _TEXT_END.match(cursor.text, cursor.position):
        raise NoCall


def _bare(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    """Read a list of calls that nothing marks; the first name tells whether it is one."""
    cursor.take(_LIST)
    first = _CALL.match(cursor.text, cursor.position)
    if first is None or first["name"] not in tools:
        raise NoCall
    yield from _listed(cursor)
    if not _LINE_END.match(cursor.text, cursor.position):
        raise NoCall  # a link of Markdown, an assignment


def _listed(cursor: Cursor) -> Iterator[ToolCall]:
    while call := _call(cursor):
        yield call
        if not cursor.take(_COMMA):
            break
    cursor.expect(_LIST_END, "the end of the list")


def _call(cursor: Cursor) -> ToolCall | None:
    start = cursor.take(_CALL)
    if start is None:
        return None
    try:
        arguments, cursor.position = python_arguments(cursor.text, cursor.position)
    except NotPython as failure:
        if failure.is_cut:
            raise Cut("an argument") from None
        raise Malformed(f"an argument of {start['name']!r} does not parse at character {failure.position}") from None
    return ToolCall(start["name"], json_object(arguments))


MARKED = Family(
    "pythonic_marked",
    r"<\|python_start\|>\s*\[ | <\|tool_call_start\|> | <function_calls>",
    by_grammar(_marked),
)
BUILTIN = Family(
    "llama_builtin",
    rf"""<\|python_tag\|>\s*{_NAME}\.call\(
    | (?:\A\s*|^(?<=think>\n)|^(?<=think>\n\n)){_NAME}\.call\(\s*(?:\)|\w+\s*=(?!=))""",
    by_grammar(_builtin),
)
BARE = Family(
    "pythonic", rf"(?:^[ \t]*|(?<=think>)|(?<=\|>))\[\s*{_NAME}\s*\(\s*(?:\)|\w+\s*=(?!=))", by_grammar(_bare)
)
