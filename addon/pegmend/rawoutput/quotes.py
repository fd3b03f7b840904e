"""What the model only tells of: a tag between quotation marks or backticks."""

import re

_QUOTES = "`'\""
# An apostrophe amid a word opens and closes nothing.
_MARKS = {"`": re.compile("`"), '"': re.compile('"'), "'": re.compile(r"(?<!\w)'|'(?!\w)")}
_WINDOW = 200


def find_unquoted(pattern: re.Pattern[str], text: str, position: int = 0) -> re.Match[str] | None:
    """Return the first tag from `position` on that does not stand in quotes."""
    return next((tag for tag in pattern.finditer(text, position) if not is_quoted(tag)), None)


def is_quoted(tag: re.Match[str]) -> bool:
    """Whether a tag stands in a quotation of its line, at the beginning of it or at its end.

    A mark before the tag opens one where there is an odd number of them: behind `"a"` nothing is quoted.
    """
    text = tag.string
    before = text[max(0, tag.start() - _WINDOW) : tag.start()].rpartition("\n")[2]
    behind = text[tag.end() : tag.end() + _WINDOW].partition("\n")[0]
    marks = {before[-1:], behind.removeprefix("\\")[:1]} & set(_QUOTES)
    return any(mark in behind and len(_MARKS[mark].findall(before)) % 2 for mark in marks)
