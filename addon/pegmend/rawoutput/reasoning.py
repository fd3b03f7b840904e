"""Splits the thoughts from the answer."""

_OPEN = "<think>"
_CLOSE = "</think>"


def split_reasoning(raw: str) -> tuple[str, str]:
    """Return reasoning and answer of a raw output.

    Only a text that begins with the opening tag has reasoning: where the generation prompt opens it, the engine puts
    that opening in front of the raw output, and a closing tag further on may stand inside an argument. Reasoning that
    is never closed is all there is: a call in it was thought of, not made.
    """
    start = raw.lstrip()
    if not start.startswith(_OPEN):
        return "", raw
    reasoning, _, answer = start[len(_OPEN) :].partition(_CLOSE)
    return reasoning.strip(), answer.lstrip()
