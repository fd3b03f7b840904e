"""Recognises what was left of a text as part of a call that could not be read.

Such a text must not go out as a plain answer, for then a call would be lost in silence.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.tools import Tools, declares

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
_BEGUN_MARKER = re.compile(r"<(?:\w+[:_|])?(?:tool_calls?|functions?(?:_calls?)?)(?![a-z])|\bfunctools\[")
_TAG = re.compile(
    r"<(?P<closes>/?)"
    r"(?P<name>(?:\w+[:_|])?(?:tool_calls?|function_calls?|function|invoke|parameter|param|arg_key|arg_value)(?::\w+)?)"
    r"(?P<ends>>)?"
)
_SPECIAL_TOKEN = re.compile(r"<[|｜][^<>|｜\n]{1,60}[|｜]>")
_BRACE = re.compile(r"[{}]")
# A call in the notation of Python or JavaScript is no JSON, but an attempt at a call all the same.
_OTHER_NOTATION = re.compile(r"\{\s*+['“]?(?:(?P<names>name|function)|type|parameters|arguments)['”]?\s*+:\s*+")
# Behind a list: a link of Markdown, an assignment, what is done with the list.
_NO_LIST = re.compile(r"\)\s*+\](?:[()]|\s*+=|[.\[]\w)")
# A line that only opens or closes what calls stand in.
_FRAME = re.compile(r"(?:```[\w+-]{0,20}|</?\w{1,40}>)?")
_LIST_MARK = re.compile(r"[-*•]\s+|[0-9]{1,4}[.)]\s+")


def find_marker(text: str) -> str | None:
    """Return the first marker of a call, of whatever family."""
    found = _MARKER.search(text)
    return found.group() if found else None


def find_closing_tag(text: str) -> str | None:
    """Return the first closing tag of a call, or of a part of one, that nothing in front of it opens."""
    opened = set()
    for tag in _TAG.finditer(text):
        if not tag["closes"]:
            opened.add(tag["name"])
        elif tag["name"] not in opened and tag["ends"]:
            return tag.group()
    return None


def find_sign(text: str, tools: Tools, *, beside_calls: bool, beside_loose: bool) -> str | None:
    """Return what shows that `text`, which holds no strings of JSON calls any more, holds a call in another format.

    A marker, or its beginning with a declared tool's name behind it; such a name beside a special token of whatever
    kind, before an object, as the key of an object or the name of an element with a parameter, or calls in the manner
    of Python on lines of their own. `tools` are the declared ones with the schemas of their parameters.

    Beside calls a closing tag is enough, beside loose ones, which nothing marks, the name before a parenthesis, or with
    braces anywhere in the text.
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
    if not re.search(names, text):
        return None  # all that follows is a sign only beside a name
    if notation := _other_notation(text, names):
        return notation
    if (token := _SPECIAL_TOKEN.search(text)) and named.search(text):
        return token.group()
    if line := _pythonic_line(text, names):
        return line[:40]
    found = re.search("|".join(_shapes(names)), text) or _element(text, names, tools)
    if found is None and beside_loose:
        found = re.search(rf"(?<![\w.-])(?:{names})(?:\.call)?\(", text)
        if found is None and _BRACE.search(text):
            found = named.search(text)
    return found.group()[:40].strip() if found else None


def _pythonic_line(text: str, names: str) -> str | None:
    """Return a line with calls in the manner of Python: in a list, or as lines of their own at the end of the text."""
    name = rf"(?:functions?\.|default_api\.)?(?:{names})(?:\.call)?"
    keyword = r"\s*+\(\s*+(?:\)|\w++\s*+=(?!=))"
    listed = re.compile(rf"(?<![=(,]\s)(?<!\bin\s)(?<!return\s)\[\s*+{name}{keyword}")
    among = re.compile(rf"\[\s*+\w[^\n]*\)\s*+,\s*+{name}{keyword}")
    lines = [_LIST_MARK.sub("", line.strip(" \t\r,;"), count=1) for line in text.splitlines()]
    for line in (line.strip("`*. ") for line in lines if " for " not in line):
        is_listed = line.endswith("]") or (line.endswith(")") and "]" not in line)
        if is_listed and (listed.search(line) or among.match(line)):
            return line
        if listed.match(line) and not _NO_LIST.search(line):
            return line
    builtin = re.search(rf"^(?:{names})\.call\(\s*+\w++\s*+=(?!=)[^\n]*+", text, re.MULTILINE)
    if builtin and text.count("```", 0, builtin.start()) % 2 == 0:
        return builtin.group()
    written = [line for line in lines if line]
    call = re.compile(rf"\[*+\s*+{name}[ \t]*+\(")
    if written and all(line.endswith((")", ")]", ")]]")) and call.match(line) for line in written):
        return written[0]
    if " for " not in text and re.fullmatch(rf"\s*+(?:\[\s*+{name}\(|{name}{keyword})[\s\S]*\)[\s,\]]*", text):
        return written[0]
    return _calls_at_end(lines, re.compile(name + keyword))


def _calls_at_end(lines: list[str], call: re.Pattern[str]) -> str | None:
    """Return the first of the calls that make up the last paragraph, or a code fence or an element at the end.

    A fence with a language behind words is a program.
    """
    first = None
    end = len(lines)
    while end and _FRAME.fullmatch(lines[end - 1]):
        end -= 1
    is_fenced = any(line.startswith("```") for line in lines[end:])
    while end and call.match(lines[end - 1]) and lines[end - 1].endswith(")"):
        end -= 1
        first = lines[end]
    frame = lines[end - 1] if end else ""
    if is_fenced and (not frame.startswith("```") or (frame != "```" and any(lines[: end - 1]))):
        return None
    return first if _FRAME.fullmatch(frame) else None


def _shapes(names: str) -> Iterator[str]:
    """Yield patterns for a declared name where it stands as in a call."""
    yield rf"(?:\A\s*+|\n[ \t]*+|>>>\s*+)(?:{names})\s*+\{{\s*+(?:[\"'}}]|[\w-]++\s*+[:=])"
    yield rf'(?<!\w)(?:{names})(?:\[ARGS\])?\{{\s*+"[^"\n]{{1,100}}"\s*+:'
    yield rf"(?:functions?\.?|\bcall:)(?:{names})(?::\d+)?\s*+(?:\{{|```)"
    yield rf"(?:\A|\n)[ \t]*+(?:{names})[ \t]*+\n```(?:json)?\s*+\{{"
    yield rf"(?:```tool_code|<(?:tool_code|execute_tool|tool_use)>)\s*+(?:print\()?(?:\w++\.)?(?:{names})\b"
    yield rf"\bdefault_api\.(?:{names})\("
    yield rf"<name>\s*+(?:{names})\s*+</name>"
    yield rf"\bAction:\**+\s*+(?:{names})\b"
    yield rf'\{{\s*+"(?:{names})"\s*+:\s*+\{{'
    yield rf'<(?:tool|action)(?:_use|_call)?\s++name="(?:{names})"'


def _element(text: str, names: str, tools: Tools) -> re.Match[str] | None:
    """Return the beginning of an element that is called like a tool, with an object or one of its parameters in it.

    In a code fence that is a document.
    """
    position, is_fenced = 0, False
    for element in re.finditer(rf'<(?P<name>{names})>\s*+(?:\{{\s*+"|<(?P<key>[^<>\s/]{{1,256}})>)', text):
        is_fenced ^= text.count("```", position, element.start()) % 2 == 1
        position = element.start()
        is_known = element["key"] is None or declares(tools, element["name"], element["key"])
        if is_known and not is_fenced:
            return element
    return None


def _other_notation(text: str, names: str) -> str | None:
    """Return the beginning of an object that names a declared tool in another notation than JSON's."""
    bare = re.compile(rf"(?:{names})\W")
    quoted = re.compile(rf"['\"“](?:{names})['\"”]")
    for attempt in _OTHER_NOTATION.finditer(text):
        if attempt["names"] and bare.match(text, attempt.end()):
            return attempt.group()
        if quoted.search(text, attempt.end(), attempt.end() + 200):
            return attempt.group()
    return None
