"""What the families have in common that write a name in tokens or a tag, JSON behind it, and another one at its end."""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.turn import ToolCall


def delimited_calls(
    cursor: Cursor, opening: re.Pattern[str], end: re.Pattern[str], end_name: str
) -> Iterator[ToolCall]:
    """Yield the calls that stand here, one directly behind the other. Raises Cut and Malformed.

    `opening` matches all up to the JSON, with a group `name` and, where the format has ids, a group `id`. `end_name` is
    what an error calls the `end`.
    """
    while call := cursor.take(opening):
        arguments = cursor.json_object()
        cursor.expect(end, end_name)
        yield ToolCall(call["name"], arguments, call.groupdict().get("id", ""))
