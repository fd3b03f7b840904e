"""The sections that families find in a text, from left to right."""

import re
from collections.abc import Iterator, Sequence

from pegmend.rawoutput.family import Family, Output, Reader, Section

# The characters that a section can begin with, but for the start of a line: no other place is looked at twice.
_FIRST = r"<\[{>\]"


class Openings:
    """The places where a section of some families may begin, in the order in which they are asked."""

    def __init__(self, families: Sequence[Family]) -> None:
        alternatives = "|".join(f"(?P<{family.name}>{family.opening})" for family in families)
        self.pattern = re.compile(f"(?=[{_FIRST}]|^)(?:{alternatives})", re.VERBOSE | re.MULTILINE)
        self.readers = {family.name: family.reader for family in families}


class Sections:
    """The sections of one text, each of which is read once: the places that are asked for only ever grow."""

    def __init__(self, output: Output, openings: Openings) -> None:
        self._output = output
        self._openings = openings
        self._readers: dict[str, Reader] = {}
        self._position = 0

    def between(self, start: int, end: int) -> Iterator[Section]:
        """Yield the sections that begin from `start` on and before `end`. Raises Problem."""
        self._position = max(self._position, start)
        while opening := self._openings.pattern.search(self._output.text, self._position, end):
            name = opening.lastgroup
            assert name is not None
            if name not in self._readers:
                self._readers[name] = self._openings.readers[name](self._output)
            section = self._readers[name](opening.start())
            self._position = max(section.end, opening.start() + 1)
            yield section
