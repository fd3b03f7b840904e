"""Raw model text and the tools that were declared -> the Turn, or the documented error."""

from pegmend.rawoutput.jsoncalls import escaped_controls
from pegmend.rawoutput.reading import read
from pegmend.rawoutput.reasoning import split_reasoning

__all__ = ["escaped_controls", "read", "split_reasoning"]
