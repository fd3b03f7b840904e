"""Raw model text and the tools that were declared -> the Turn, or the documented error."""

from pegmend.rawoutput.reading import read

__all__ = ["read"]
