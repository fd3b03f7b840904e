"""What the model only tells of: text between quotation marks or backticks."""

import re

# A run of backticks is one mark, but for a code fence at the start of a line. An apostrophe amid a word is none.
_MARKS = {
    "`": re.compile(r"(?<!`)(?!^\s*`{3})`+"),
    '"': re.compile('"'),
    "'": re.compile(r"(?<!\w)'|'(?!\w)"),
}
_WINDOW = 1000
_BEHIND = 200


def find_unquoted(pattern: re.Pattern[str], text: str, position: int = 0) -> re.Match[str] | None:
    """Return the first tag from `position` on that does not stand in quotes."""
    return next((tag for tag in pattern.finditer(text, position) if not is_quoted(tag)), None)


def is_quoted(tag: re.Match[str]) -> bool:
    """Whether a tag stands in a quotation of its line, at the beginning of it or at its end."""
    text, start, end = tag.string, tag.start(), tag.end()
    beside = {text[max(0, start - 1) : start], text[end : end + 2].removeprefix("\\")[:1]}
    return any(_encloses(mark, text, start, end) for mark in beside & _MARKS.keys())


def in_code_span(text: str, start: int, end: int) -> bool:
    """Whether backticks that stand in its lines enclose a part of the text."""
    return _encloses("`", text, start, end)


def _encloses(mark: str, text: str, start: int, end: int) -> bool:
    """Whether a quotation with this mark is open before a part of a line, and ends behind it.

    It is open where an odd number of marks stands before: behind `"a"` nothing is quoted. In a line that is too long
    for that, marks on both sides tell it.
    """
    line_start = text.rfind("\n", max(0, start - _WINDOW), start) + 1
    behind = text[end : end + _BEHIND].partition("\n")[0].replace("```", "")
    if not line_start and start > _WINDOW:
        return text[start - 1] == mark and behind.removeprefix("\\").startswith(mark)
    return mark in behind and len(_MARKS[mark].findall(text[line_start:start])) % 2 == 1
