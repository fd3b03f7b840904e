"""pegmend: gives agents back the tool calls that llama.cpp's peg parser turns into HTTP 500."""

__version__ = "0.1.0"
