"""Ill-formed bodies of every kind: what they become, and that nothing else changes."""

import codecs
import json
import tracemalloc

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegmend.utf8 import read_body


@pytest.mark.parametrize(
    ("raw", "repaired", "reason"),
    [
        (b'"d\xe9cor"', '"décor"', "Windows-1252"),
        (b'"\x93quoted\x94 \x80 5 \x96 it\x92s"', '"“quoted” € 5 – it’s"', "Windows-1252"),
        (b'"\xe9\xe8\xfc"', '"éèü"', "Windows-1252"),
        (b'"caf\xe9"', '"café"', "Windows-1252"),
        (b'"mari\xe9\x92s"', '"marié’s"', "Windows-1252"),
        ('"é \u2028 漢 😀 '.encode() + b'\xe9"', '"é \u2028 漢 😀 é"', "Windows-1252"),
        (b'"\x81 \x8d"', '"\ufffd \ufffd"', "no character in UTF-8 or Windows-1252"),
        (b'"cut \xe2\x82"', '"cut \ufffd"', "cut UTF-8 sequence"),
        (b'"cut \xf0\x9f\x98"', '"cut \ufffd"', "cut UTF-8 sequence"),
        (b'"cut \xf0\x9f"', '"cut \ufffd"', "cut UTF-8 sequence"),
        (b'"\xf0\x9f\x98..."', '"\ufffd..."', "cut UTF-8 sequence"),
        (b'"\xed\xa0\xbd\xed\xb8\x80"', '"😀"', "surrogate pair in UTF-8 (CESU-8)"),
        (b'"\xed\xa0\xbd x \xed\xb8\x80"', '"\ufffd x \ufffd"', "half of a surrogate pair"),
        (b'"a\xc0\x80b"', '"a\\u0000b"', "U+0000 as C0 80"),
        (b'"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf"', '"\ufffd \ufffd \ufffd"', "overlong UTF-8 sequence"),
        (b'"\xf5\xff"', '"õÿ"', "Windows-1252"),
        (b'"\\ud83d"', '"\\ufffd"', "half of a surrogate pair, escaped"),
        (b'"\\uDE00 \\ud83d \\ude00"', '"\\ufffd \\ufffd \\ufffd"', "half of a surrogate pair, escaped"),
        (b'"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"', "half of a surrogate pair, escaped"),
        (b'"a\nb\tc\x00d\x1f\x7f"', '"a\\nb\\tc\\u0000d\\u001f\x7f"', "raw control character in a string"),
        (b'"\\\\\n"', '"\\\\\\n"', "raw control character in a string"),
        (b'{"a":NaN,"b":-Infinity,"c":[Infinity]}', '{"a":null,"b":null,"c":[null]}', "no number in JSON"),
        (b'\xef\xbb\xbf"d\xe9cor"', '\ufeff"décor"', "Windows-1252"),
        (b'{"d\xe9cor" : 1.50 ,  "x":"\\u00e9"}', '{"décor" : 1.50 ,  "x":"\\u00e9"}', "Windows-1252"),
    ],
)
def test_the_whole_kind(raw: bytes, repaired: str, reason: str) -> None:
    body = read_body(raw)
    assert body.raw.decode() == repaired
    assert {change.reason for change in body.changes} == {reason}
    assert body.value == json.loads(repaired.removeprefix("\ufeff"))
    assert not body.problem


def test_each_change_is_told() -> None:
    body = read_body(b'{"a": "d\xe9cor", "b": NaN}')
    assert [(change.offset, change.before, change.after) for change in body.changes] == [
        (8, b"\xe9", "é"),
        (20, b"NaN", "null"),
    ]


TEXT = '{"messages": [{"content": "décor “漢字” 😀 \\u00e9"}]}'


@pytest.mark.parametrize(
    ("encoding", "charset"),
    [
        ("utf-16", ""),
        ("utf-16-le", ""),
        ("utf-16-be", ""),
        ("utf-32", ""),
        ("utf-32-le", ""),
        ("utf-32-be", ""),
        ("utf-16-be", "utf-16-be"),
        ("gb18030", "gbk"),
        ("gb18030", "GB18030"),
    ],
)
def test_whole_bodies_in_another_encoding(encoding: str, charset: str) -> None:
    text = TEXT if charset != "gbk" else TEXT.replace("😀", "").replace("“", "").replace("”", "")
    body = read_body(text.encode(encoding), charset)
    assert body.raw.decode().removeprefix("\ufeff") == text
    assert body.encoding
    assert body.is_changed


@pytest.mark.parametrize("charset", ["iso-8859-1", "latin1", "windows-1252", "us-ascii"])
def test_a_declared_legacy_charset(charset: str) -> None:
    body = read_body('{"x": "Ã© “décor”"}'.encode("cp1252"), charset)
    assert body.raw.decode() == '{"x": "Ã© “décor”"}'


def test_shift_jis_is_read_only_if_it_is_declared() -> None:
    raw = '{"x": "日本語"}'.encode("shift_jis")
    assert read_body(raw, "shift_jis").raw.decode() == '{"x": "日本語"}'
    assert read_body(raw).raw.decode() != '{"x": "日本語"}'


def test_utf16_with_half_a_pair() -> None:
    raw = '{"x": "\ud83d"}'.encode("utf-16", "surrogatepass")
    assert read_body(raw).value == {"x": "\ufffd"}


@pytest.mark.parametrize(
    "charset", ["idna", "punycode", "undefined", "\x80x", "unicode_escape", "rot13", "utf-7", "hex"]
)
def test_codecs_that_are_no_encodings_of_text_are_not_used(charset: str) -> None:
    body = read_body(b'{"a": "C:\\\\new", "b": "\xe9"}', charset)
    assert body.value == {"a": "C:\\new", "b": "é"}
    assert not body.encoding


@pytest.mark.parametrize("charset", ["", "utf-8", "iso-8859-1", "utf-16", "nonsense", "rot13", "\x00"])
@pytest.mark.parametrize(
    "raw",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        '"dÃ©cor â€œ"'.encode(),
        b' {"a" : [ 1.0, 1e5, -0 ] , "a":"\\u0000 \\ud83d\\ude00" } \n',
        b"[]",
        b"123456789012345678901234567890",
    ],
)
def test_what_is_accepted_stays(raw: bytes, charset: str) -> None:
    body = read_body(raw, charset)
    assert body.raw is raw
    assert not body.is_changed
    assert body.value is not None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xe9",
        b'{"a": "\xe9',
        b'"a\\\nb"',
        b'"\\x"',
        b"[NaN",
        b"NaN1",
        b'{"a":\xe9}',
        b'"a" \x00',
        b"\xff\xfe{",
    ],
)
def test_what_cannot_be_repaired_stays_and_is_told(raw: bytes) -> None:
    body = read_body(raw)
    assert body.raw is raw
    assert not body.is_changed
    assert body.problem


SIGNS = [b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"1", b"NaN", b"\n", b"\x00", b"a", b'{"a":"', b'"}', b'["']
ILL_FORMED = [b"\xe9", b"\xe2\x82", b"\xed\xa0\xbd", b"\xed\xb8\x80", b"\xc0\x80", b"\\ud83d", b"\\ude00", b"\xff\xfe"]
BYTES = st.lists(st.sampled_from([*SIGNS, *ILL_FORMED, "漢".encode()]), max_size=14).map(b"".join)
WRAPPED = (BYTES | st.binary(max_size=40)).map(lambda inner: b'{"x": ["' + inner.replace(b'"', b"") + b'"]}')


@settings(max_examples=1500)
@given(BYTES | st.binary(max_size=60) | WRAPPED, st.sampled_from(["", "latin-1", "utf-16", "gbk"]))
def test_any_bytes(raw: bytes, charset: str) -> None:
    body = read_body(raw, charset)
    if body.problem:
        assert body.raw is raw
        assert not body.is_changed
        return
    assert orjson.loads(body.raw.removeprefix(codecs.BOM_UTF8)) == body.value
    json.loads(body.raw.decode("utf-8-sig"), parse_constant=pytest.fail)
    again = read_body(body.raw, charset)
    assert again.raw == body.raw
    assert not again.is_changed


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(), st.lists, max_leaves=8))
def test_any_accepted_body_stays(value: object) -> None:
    try:
        raw = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert read_body(raw).raw is raw


def test_ten_megabytes_in_linear_time() -> None:
    raw = b'{"x": "' + b"d\xe9cor \xe2\x82 " * 200_000 + b'"}'
    body = read_body(raw)
    assert body.value["x"].startswith("décor")
    assert body.change_count == 400_000


def test_few_changes_are_told_and_all_are_counted() -> None:
    raw = b'{"x": "' + b"\xe9" * 300_000 + b'"}'
    tracemalloc.start()
    body = read_body(raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert body.value == {"x": "é" * 300_000}
    assert body.change_count == 300_000
    assert [change.offset for change in body.changes] == list(range(7, 7 + len(body.changes)))
    assert 50 < len(body.changes) < 101
    assert peak < 40 * len(raw)  # 27 times that is orjson's buffer
