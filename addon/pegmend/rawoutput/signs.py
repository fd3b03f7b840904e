"""Recognises what was left of a text as part of a call that could not be read.

Such a text must not go out as a plain answer, for then a call would be lost in silence.
"""

import re
from collections.abc import Collection, Iterator

# What stands for a call in some family, and for nothing else. People write about tags, but a call may be lost here.
_MARKER = re.compile(
    r"""
      <(?:\w+[:_|])?(?:tool_calls?|function_calls?)(?::\w+)?> | <TOOLCALL> | <function=[^<>\n]{1,256}>
    | <function\S{0,3}\s?name= | <(?:\w+:)?invoke\s+name= | <start_function_call>
    | \[TOOL_CALLS\] | \[ARGS\] | to=functions\. | \]<\]minimax\[>\[
    | <\|python_tag\|> | <[|｜]tool[_▁] | <\|?｜?\s?DSML | <\|START_ACTION\|> | <\|channel\|>commentary\ to=
    | <\|python_start\|> | <\|content_invoke_tool | <\|plamo:begin_tool | function\ call<\|role_sep\|>
    | <\|tools_prefix\|> | <\|action_start\|> | <\|function_call\|>
    """,
    re.VERBOSE,
)
# The beginning of one, which may be a mere word as well.
_BEGUN_MARKER = re.compile(r"<(?:\w+[:_|])?(?:tool_call|function)|\bfunctools\[")
_CLOSING_TAG = re.compile(
    r"</((?:\w+[:_|])?(?:tool_calls?|function_calls?|function|invoke|parameter|param|arg_key|arg_value)(?::\w+)?)>"
)
_SPECIAL_TOKEN = re.compile(r"<[|｜][^<>|｜\n]{1,60}[|｜]>")
_BRACE = re.compile(r"[{}]")
# A call in the notation of Python or JavaScript is no JSON, but an attempt at a call all the same.
_OTHER_NOTATION = re.compile(r"\{\s*+['“]?(?:name|function|type|parameters|arguments)['”]?\s*+:")


def find_marker(text: str) -> str | None:
    """Return the first marker of a call, of whatever family."""
    found = _MARKER.search(text)
    return found.group() if found else None


def find_closing_tag(text: str) -> str | None:
    """Return the first closing tag of a call, or of a part of one, that nothing in front of it opens."""
    openings: dict[str, int] = {}
    for tag in _CLOSING_TAG.finditer(text):
        name = tag[1]
        if name not in openings:
            openings[name] = text.find(f"<{name}")
        if not 0 <= openings[name] < tag.start():
            return tag.group()
    return None


def find_sign(text: str, tools: Collection[str], *, beside_calls: bool) -> str | None:
    """Return what shows that `text`, which holds no strings of JSON calls any more, holds a call in another format.

    A marker, or its beginning with a declared tool's name behind it; such a name beside a special token of whatever
    kind, before an object on a line of its own, as the key of an object, or as the whole text in the manner of Python.
    Beside calls less is enough: a closing tag, the name before a parenthesis, or with braces anywhere in the text.
    """
    names = "|".join(map(re.escape, filter(None, tools))) or "(?!)"
    named = re.compile(rf"(?<![\w.-])(?:{names})(?![\w-])")
    if marker := find_marker(text):
        return marker
    begun = _BEGUN_MARKER.search(text)
    if begun and (beside_calls or named.search(text, begun.end())):
        return begun.group()
    if (closing := find_closing_tag(text)) and (beside_calls or named.search(text)):
        return closing
    if notation := _other_notation(text, names):
        return notation
    if (token := _SPECIAL_TOKEN.search(text)) and named.search(text):
        return token.group()
    if line := _pythonic_line(text, names):
        return line[:40]
    found = re.search("|".join(_shapes(names)), text)
    if found is None and beside_calls:
        found = re.search(rf"(?<![\w.-])(?:{names})(?:\.call)?\(", text)
        if found is None and _BRACE.search(text):
            found = named.search(text)
    return found.group()[:40].strip() if found else None


def _pythonic_line(text: str, names: str) -> str | None:
    """Return a line that ends in a list of calls by keyword, or the first one where all lines are calls."""
    call = re.compile(rf"\[*+\s*+(?:{names})[ \t]*+\(")
    listed = re.compile(rf"(?<![=(,]\s)(?<!\bin\s)(?<!return\s)\[\s*+(?:{names})\s*+\(\s*+(?:\)|\w++\s*+=(?!=))")
    lines = [stripped for line in text.splitlines() if (stripped := line.strip(" \t\r,;"))]
    for line in lines:
        if line.endswith("]") and " for " not in line and listed.search(line):
            return line
    if lines and all(line.endswith((")", ")]", ")]]")) and call.match(line) for line in lines):
        return lines[0]
    return None


def _shapes(names: str) -> Iterator[str]:
    """Yield patterns for a declared name where it stands as in a call."""
    yield rf"(?:\A\s*+|\n[ \t]*+|>>>\s*+)(?:{names})\s*+\{{"
    yield rf"(?:functions?\.?|\bcall:)(?:{names})(?::\d+)?\s*+(?:\{{|```)"
    yield rf"```tool_code\s++(?:{names})\b"
    yield rf"\bAction:\**+\s*+(?:{names})\b"
    yield rf'"(?:{names})"\s*+:\s*+\{{'


def _other_notation(text: str, names: str) -> str | None:
    """Return the beginning of an object that names a declared tool in another notation than JSON's."""
    declared = re.compile(rf"\W(?:{names})\W")
    for attempt in _OTHER_NOTATION.finditer(text):
        if declared.search(text, attempt.end(), attempt.end() + 200):
            return attempt.group()
    return None
