r"""Makes a JSON body well-formed: bytes that the engine's parser takes, and a list of what was changed.

A body that is well-formed already is never changed. In any other, every ill-formed place is read as what it most likely
was, and all the rest stays to the byte:

- a declared encoding (charset, byte order mark, the zeros of UTF-16 and UTF-32): the whole body is in it
- a surrogate pair whose halves were each written as UTF-8 (CESU-8), and C0 80 for U+0000
- a byte of Windows-1252 amid text: \xe9 is é
- any other sequence, cut or overlong: U+FFFD
- half of a surrogate pair as an escape: \ufffd
- a raw control character in a string: its escape
- NaN and Infinity where a value stands: null

What cannot be made well-formed in this way stays as it is, so that the engine's own error is seen.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

_BOM = codecs.BOM_UTF8
# The long marks first: that of UTF-32-LE begins with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Without a mark: JSON begins with two ASCII characters, whose zeros show the encoding (RFC 4627, section 3).
_ZEROS = (
    (re.compile(rb"[^\0]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0\0\0[^\0]"), "utf-32-be"),
    (re.compile(rb"[^\0]\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]"), "utf-16-be"),
)
_LEGACY = re.compile(r"ascii|iso8859|cp\d|gb|big5|shift_jis|euc_|koi8|utf-16|utf-32|hz|johab|iso2022|mac-|tis")
"""Of Python's codecs, those that are encodings of text: others would change what was written."""

# What is declared as Latin-1 is Windows-1252 in practice; browsers read it so too.
_WINDOWS_1252 = frozenset({"iso8859-1", "ascii", "cp1252"})

# One alternative for each kind of thing in a body that matters here. The groups up to "byte" are ill-formed UTF-8:
# maximal ill-formed parts as Unicode defines them, and forms that other encoders write.
_PARTS = re.compile(
    rb"""
      (?: [\xc2-\xdf][\x80-\xbf] | \xe0[\xa0-\xbf][\x80-\xbf] | [\xe1-\xec\xee\xef][\x80-\xbf]{2}
        | \xed[\x80-\x9f][\x80-\xbf] | \xf0[\x90-\xbf][\x80-\xbf]{2} | [\xf1-\xf3][\x80-\xbf]{3}
        | \xf4[\x80-\x8f][\x80-\xbf]{2} )++
    | (?P<pair> \xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf] )
    | (?P<zero> \xc0\x80 )
    | (?P<half> \xed[\xa0-\xbf][\x80-\xbf] )
    | (?P<overlong> [\xc0\xc1][\x80-\xbf] | \xe0[\x80-\x9f][\x80-\xbf] | \xf0[\x80-\x8f][\x80-\xbf]{2} )
    | (?P<cut> (?: \xe0[\xa0-\xbf] | [\xe1-\xec\xee\xef][\x80-\xbf] | \xed[\x80-\x9f]
                 | \xf0[\x90-\xbf][\x80-\xbf]? | [\xf1-\xf3][\x80-\xbf]{1,2} | \xf4[\x80-\x8f][\x80-\xbf]? ) )
    | (?P<byte> [\x80-\xff] )
    | (?P<quote> " )
    | \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    | (?P<surrogate> \\u[dD][89a-fA-F][0-9a-fA-F]{2} )
    | \\[\x00-\x7f]
    | (?P<control> [\x00-\x1f] )
    | (?P<number> (?<![\w.])(?: NaN | -?Infinity )(?![\w.]) )
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROL_ESCAPES = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r"}
_REPLACEMENT = "\ufffd"
_TOLD_CHANGES = 64
_ONLY_IN_STRINGS = frozenset({"surrogate", "control"})
_NOT_IN_STRINGS = frozenset({"number"})


@dataclass(frozen=True, slots=True)
class Change:
    """One change: at which byte, what stood there, what stands there now, and why."""

    offset: int
    before: bytes
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON body: its bytes, its value, and what was changed in it to have one.

    `encoding` is the one that the whole body was in before, "" for UTF-8; the offsets of `changes` are in the text
    after its conversion. `changes` are the first of `change_count`: there may be as many as bytes. Where the body has
    no value, `problem` says why and where, and the bytes are the original's.
    """

    raw: bytes
    value: Any = None
    encoding: str = ""
    changes: tuple[Change, ...] = ()
    change_count: int = 0
    problem: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether the bytes differ from the original's."""
        return bool(self.encoding or self.changes)


def read_body(raw: bytes, charset: str = "") -> Body:
    """Return the JSON in a request body, made well-formed where that is possible.

    `charset` is what the Content-Type declares. The common body costs one parse; any other takes a while.
    """
    try:
        return Body(raw, _value(raw))
    except orjson.JSONDecodeError as error:
        problem = str(error)
    converted, encoding = _as_utf8(raw, charset)
    body, changes, change_count = _well_formed(converted)
    try:
        value = _value(body)
    except orjson.JSONDecodeError:
        return Body(raw, problem=problem)
    return Body(body, value, encoding, changes, change_count)


def sound_body(raw: bytes) -> Body | None:
    """Return the JSON in a well-formed request body, None for any other, which is for `read_body`."""
    try:
        return Body(raw, _value(raw))
    except orjson.JSONDecodeError:
        return None


def _value(raw: bytes) -> Any:
    """Return what a body holds; like the engine, take a byte order mark. Raises orjson.JSONDecodeError."""
    return orjson.loads(raw.removeprefix(_BOM))


def _as_utf8(raw: bytes, charset: str) -> tuple[bytes, str]:
    """Return a body in UTF-8, or as it is; and the encoding that it was in, "" where that is UTF-8."""
    for encoding in _declared(raw, charset):
        try:
            # Halves of surrogate pairs are kept, to be seen later as what they are.
            return raw.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass"), encoding
        except (UnicodeDecodeError, LookupError):
            continue
    return raw, ""


def _declared(raw: bytes, charset: str) -> list[str]:
    """Return the encodings that a body shows or declares, the likeliest first."""
    shown = [encoding for mark, encoding in _MARKS if raw.startswith(mark)]
    shown += [encoding for zeros, encoding in _ZEROS if zeros.match(raw)]
    try:
        named = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return shown
    if not _LEGACY.match(named):
        return shown
    return [*shown, "cp1252" if named in _WINDOWS_1252 else named]


def _well_formed(raw: bytes) -> tuple[bytes, tuple[Change, ...], int]:
    """Return a body whose bytes and tokens are well-formed, the first changes that made it so, and their number."""
    changes: list[Change] = []
    count = 0
    written = bytearray()
    kept = 0
    in_string = False
    for part in _PARTS.finditer(raw):
        kind = part.lastgroup
        if kind == "quote":
            in_string = not in_string
        if kind is None or kind == "quote" or kind in (_NOT_IN_STRINGS if in_string else _ONLY_IN_STRINGS):
            continue
        after, reason = _REPAIRS[kind](part)
        if count < _TOLD_CHANGES:
            changes.append(Change(part.start(), part.group(), after, reason))
        count += 1
        written += raw[kept : part.start()]
        written += after.encode()
        kept = part.end()
    written += raw[kept:]
    return bytes(written), tuple(changes), count


def _surrogate_pair(part: re.Match[bytes]) -> tuple[str, str]:
    text = part.group().decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    return text, "surrogate pair in UTF-8 (CESU-8)"


def _cut(part: re.Match[bytes]) -> tuple[str, str]:
    """Read a sequence that ends too early: before a letter it is Windows-1252, elsewhere a character was cut."""
    following = part.string[part.end() : part.end() + 1]
    return _windows_1252(part) if following.isalpha() else (_REPLACEMENT, "cut UTF-8 sequence")


def _windows_1252(part: re.Match[bytes]) -> tuple[str, str]:
    try:
        return part.group().decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        return _REPLACEMENT, "no character in UTF-8 or Windows-1252"


def _control(part: re.Match[bytes]) -> tuple[str, str]:
    code = part.group()[0]
    return _CONTROL_ESCAPES.get(code, f"\\u{code:04x}"), "raw control character in a string"


_REPAIRS: dict[str, Callable[[re.Match[bytes]], tuple[str, str]]] = {
    "pair": _surrogate_pair,
    "zero": lambda _: ("\\u0000", "U+0000 as C0 80"),
    "half": lambda _: (_REPLACEMENT, "half of a surrogate pair"),
    "overlong": lambda _: (_REPLACEMENT, "overlong UTF-8 sequence"),
    "cut": _cut,
    "byte": _windows_1252,
    "surrogate": lambda _: ("\\ufffd", "half of a surrogate pair, escaped"),
    "control": _control,
    "number": lambda _: ("null", "no number in JSON"),
}
