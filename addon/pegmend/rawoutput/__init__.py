"""Raw model text and the tools that were declared -> the Turn, or the documented error."""

from pegmend.rawoutput.reading import read
from pegmend.rawoutput.reasoning import split_reasoning

__all__ = ["read", "split_reasoning"]
