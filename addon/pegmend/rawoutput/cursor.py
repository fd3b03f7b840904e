"""A place in a raw output, and what a family's grammar can ask for there."""

import re

from pegmend.rawoutput.jsonscan import BrokenValue, end_of_value
from pegmend.rawoutput.values import escaped_controls, is_strict_json

_SPACE = re.compile(r"\s*+")
# What may be left where the text was cut between two tags or amid one.
_CUT_TAG = re.compile(r"\s*+(?:[<\[\]][^\n]{0,200})?+\Z")


class Cut(Exception):
    """The text ends amid a call."""


class Malformed(Exception):
    """Something else stands where the grammar goes on; the message says what was expected."""


class NoCall(Exception):
    """What looked like the opening of a call is just text."""


class Cursor:
    """A position in a text that only moves forward; `truncated` tells that the engine cut the text."""

    __slots__ = ("position", "text", "truncated")

    def __init__(self, text: str, position: int, *, truncated: bool) -> None:
        self.text = text
        self.truncated = truncated
        self.position = position

    @property
    def at_end(self) -> bool:
        """Whether only white space is left."""
        space = _SPACE.match(self.text, self.position)
        return space is not None and space.end() == len(self.text)

    def skip_space(self) -> None:
        """Go over white space."""
        space = _SPACE.match(self.text, self.position)
        assert space is not None
        self.position = space.end()

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go over what matches here and return it; None, and no move, where nothing does."""
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Go over what has to stand here and return it. Raises Cut or Malformed."""
        found = self.take(pattern)
        if found is None:
            raise self.failure(what)
        return found

    def until(self, end: re.Pattern[str], what: str) -> str:
        """Go over the first place that matches `end` and return the text before it. Raises Cut where there is none."""
        found = end.search(self.text, self.position)
        if found is None:
            raise Cut(what)
        text = self.text[self.position : found.start()]
        self.position = found.end()
        return text

    def json_value(self) -> None:
        """Go over a JSON object or array. Raises Cut or Malformed."""
        if self.text[self.position : self.position + 1] not in ("{", "["):
            raise self.failure("JSON")
        try:
            self.position = end_of_value(self.text, self.position)
        except BrokenValue as broken:
            if broken.is_cut:
                raise Cut("the end of the JSON") from None
            raise Malformed(f"the JSON does not parse at character {broken.position}") from None

    def json_object(self) -> str:
        """Go over a JSON object and return it, with the raw control characters in its strings escaped."""
        start = self.position
        if self.text.startswith("[", start):
            raise Malformed("a list stands in place of the arguments")
        self.json_value()
        written = escaped_controls(self.text[start : self.position])
        if not is_strict_json(written):
            raise Malformed("the JSON holds half of a character, or a number without end")
        return written

    def failure(self, what: str) -> Exception:
        """Return the exception for a text that does not go on with `what`."""
        if _CUT_TAG.match(self.text, self.position):
            return Cut(what)
        return Malformed(f"{what} is missing at character {self.position}")
