"""Undoes mojibake in what assistants and tools said: UTF-8 that was read as another encoding, and written again."""

from typing import Any

import ftfy
from ftfy import TextFixerConfig

# Only the encoding, and only where ftfy is certain: nothing is uncurled, unescaped or normalised.
_CONFIG = TextFixerConfig(
    unescape_html=False,
    remove_terminal_escapes=False,
    fix_latin_ligatures=False,
    fix_character_width=False,
    uncurl_quotes=False,
    fix_line_breaks=False,
    fix_surrogates=False,
    remove_control_chars=False,
    normalization=None,
    restore_byte_a0=False,
    replace_lossy_sequences=False,
    decode_inconsistent_utf8=False,
)
_ROLES = frozenset({"assistant", "tool"})


def without_mojibake(messages: object) -> tuple[list[Any], list[str]] | None:
    """Return a history whose texts are repaired, and where; None where there is nothing to do."""
    if not isinstance(messages, list):
        return None
    repaired: list[Any] = []
    done: list[str] = []
    for place, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) and message.get("role") in _ROLES else None
        fixed = ftfy.fix_encoding(content, _CONFIG) if isinstance(content, str) else content
        repaired.append({**message, "content": fixed} if fixed != content else message)
        if fixed != content:
            done.append(f"messages[{place}].content: mojibake")
    return (repaired, done) if done else None
