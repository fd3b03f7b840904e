"""Raw model text and the tools that were declared -> the Turn, or the documented error."""

from pegmend.rawoutput.families.reasoning import answer_of, find_tag, opened_at_end
from pegmend.rawoutput.jsonscan import members_of
from pegmend.rawoutput.prose import SEPARATORS
from pegmend.rawoutput.reading import read
from pegmend.rawoutput.tools import Tools
from pegmend.rawoutput.values import escaped_controls, quoted

__all__ = [
    "SEPARATORS",
    "Tools",
    "answer_of",
    "escaped_controls",
    "find_tag",
    "members_of",
    "opened_at_end",
    "quoted",
    "read",
]
