"""Reads literals and calls in the notation of Python: linear, bounded in depth, and never evaluated.

JSON's `true`, `false` and `null` are taken too: models mix the two.
"""

import json
import math
import re

_SPACE = re.compile(r"[ \t\r\n]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])")
_WORD = re.compile(r"(?:True|False|None|true|false|null)(?!\w)")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_QUOTE = re.compile(r"'''|\"\"\"|'|\"")
_KEY = re.compile(r"([^\W\d]\w*+)\s*+=(?!=)\s*+")
_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[\\'\"abfnrtv\n])|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-7]{1,3}))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_BODIES = {
    quote: re.compile(
        rf"(?:[^\\{quote[0]}]++|\\.|{quote[0]}(?!{quote[0]}{quote[0]}))*+"
        if len(quote) == 3
        else rf"(?:[^\\{quote[0]}]++|\\.)*+",
        re.DOTALL,
    )
    for quote in ("'", '"', "'''", '"""')
}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_CUT_WORD = re.compile(r"[-\w.]{0,40}\s*\Z")
_MAX_DEPTH = 100


class NotPython(Exception):
    """The text does not go on as a literal; `is_cut` where it only ends too early."""

    def __init__(self, position: int, *, is_cut: bool) -> None:
        super().__init__(f"no Python literal at character {position}")
        self.position = position
        self.is_cut = is_cut


def python_value(text: str, position: int) -> tuple[str, int]:
    """Return the literal at `position` as JSON, and where it ends. Raises NotPython."""
    return _value(text, position, 0)


def python_arguments(text: str, position: int) -> tuple[dict[str, str], int]:
    """Return the keyword arguments that stand behind an opening parenthesis, as JSON, and where they end.

    A name that Python reserves (`from=`) is taken as any other. Raises NotPython.
    """
    arguments: dict[str, str] = {}
    position = _skip(text, position)
    while not text.startswith(")", position):
        key = _KEY.match(text, position)
        if key is None or key[1] in arguments:
            raise _failure(text, position)
        arguments[key[1]], position = _value(text, key.end(), 0)
        position = _after_item(text, position, ")")
    return arguments, position + 1


def _value(text: str, position: int, depth: int) -> tuple[str, int]:
    if depth > _MAX_DEPTH:
        raise NotPython(position, is_cut=False)
    if quote := _QUOTE.match(text, position):
        return _string(text, quote)
    if number := _NUMBER.match(text, position):
        if math.isinf(float(number.group())):
            raise NotPython(position, is_cut=False)
        return number.group(), number.end()
    if word := _WORD.match(text, position):
        return _WORDS.get(word.group(), word.group()), word.end()
    bracket = text[position : position + 1]
    if bracket in _CLOSING and bracket:
        return _collection(text, position, depth)
    raise _failure(text, position)


def _string(text: str, quote: re.Match[str]) -> tuple[str, int]:
    body = _BODIES[quote.group()].match(text, quote.end())
    assert body is not None
    if not text.startswith(quote.group(), body.end()):
        raise NotPython(len(text), is_cut=True)
    value = _ESCAPE.sub(_unescaped, body.group())
    # Two escapes may be the halves of one character; a half alone is no text.
    try:
        value = value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotPython(quote.start(), is_cut=False) from None
    return json.dumps(value, ensure_ascii=False), body.end() + len(quote.group())


def _unescaped(escape: re.Match[str]) -> str:
    if simple := escape["simple"]:
        return _SIMPLE.get(simple, simple)
    if octal := escape["octal"]:
        return chr(int(octal, 8))
    code = int(escape["x"] or escape["u"] or escape["U"], 16)
    return chr(code) if code <= 0x10FFFF else escape.group()


def _collection(text: str, position: int, depth: int) -> tuple[str, int]:
    """Read a list, tuple or set as a JSON array, a dict as an object."""
    start, closing = position, _CLOSING[text[position]]
    position = _skip(text, position + 1)
    items: list[str] = []
    is_object = closing == "}" and text.startswith("}", position)
    while not text.startswith(closing, position):
        item_start = position
        item, position = _value(text, position, depth + 1)
        after = _skip(text, position)
        if closing == "}" and text.startswith(":", after):
            if not item.startswith('"') or (items and not is_object):
                raise NotPython(item_start, is_cut=False)
            is_object = True
            member, position = _value(text, _skip(text, after + 1), depth + 1)
            item = f"{item}: {member}"
        elif is_object:
            raise _failure(text, after)
        items.append(item)
        position = _after_item(text, position, closing)
    if closing == ")" and len(items) == 1 and not text[start:position].rstrip().endswith(","):
        return items[0], position + 1
    opening, end = ("{", "}") if is_object else ("[", "]")
    return opening + ", ".join(items) + end, position + 1


def _after_item(text: str, position: int, closing: str) -> int:
    """Go over the comma behind an item; it may be missing before the end."""
    position = _skip(text, position)
    if text.startswith(",", position):
        return _skip(text, position + 1)
    if not text.startswith(closing, position):
        raise _failure(text, position)
    return position


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    assert space is not None
    return space.end()


def _failure(text: str, position: int) -> NotPython:
    # A word or a number may be what the end of the text cut short.
    return NotPython(position, is_cut=_CUT_WORD.match(text, position) is not None)
