"""The gate: healthy bytes pass as they come, the failure stays behind."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegmend.gate import FailureGate

CHUNK = b'data: {"choices":[{"delta":{"content":"an error: {x} \xe2\x80\xa8"}}]}\n\n'
FAILURE = b'data: {"error":{"code":500,"message":"... does not match the expected peg-native format"}}\n\n'
OTHER = b'data: {"error":{"code":500,"message":"out of memory"}}\n\n'
NAMED = b"event: error\n"
HEALTHY = [
    CHUNK * 3 + b"data: [DONE]\n\n",
    CHUNK + OTHER + b"data: [DONE]\n\n",
    OTHER,
    b'{"error": "no stream"}',
    b'data: {"erro',
    b'data: {"error":{"message":"does not match the expected peg-native format"',
    b'x data: {"error":{"message":"does not match the expected peg-native format"}}\n\n',
    b"error: ",
    b'event: error\ndata: {"message":"out of memory"}\n\n' + CHUNK,
    b"event: errors\n\n" + CHUNK,
    b"event: message\n" + CHUNK + b"event: err",
    b"event: error\n",
    b": comment\r\n\r\n" + CHUNK.replace(b"\n", b"\r\n"),
    CHUNK.strip(),
    b"\n\n\n",
]
FAILED = [
    FAILURE,
    CHUNK + FAILURE,
    CHUNK * 2 + FAILURE + b"data: [DONE]\n\n",
    CHUNK + OTHER + FAILURE,
    FAILURE.replace(b"data: ", b"data:"),
    FAILURE.replace(b"\n", b"\r\n"),
    CHUNK + b'error: {"code":500,"message":"does not match the expected peg-native format"}\n\n',
    CHUNK + NAMED + FAILURE,
    CHUNK + OTHER + NAMED.replace(b" ", b"") + FAILURE.replace(b" ", b"", 1) + CHUNK,
    (CHUNK + NAMED + FAILURE).replace(b"\n", b"\r\n"),
    CHUNK + NAMED + FAILURE.replace(b'{"error":', b"").replace(b"}}", b"}"),
    CHUNK + b'data: {"error":{"message":"Failed to parse input at pos 31: ; {}"}}\n\n',
]


def run(stream: bytes, size: int) -> tuple[FailureGate, bytes]:
    """Return a gate after a stream in pieces of `size`, and what passed before the end."""
    gate = FailureGate()
    passed = b""
    for start in range(0, len(stream), size):
        out = gate(stream[start : start + size])
        assert out != b""
        passed += out if isinstance(out, bytes) else b"".join(out)
    return gate, passed


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("stream", HEALTHY)
def test_healthy_streams_pass(stream: bytes, size: int) -> None:
    gate, passed = run(stream, size)
    rest = gate(b"")
    assert gate.failure is None
    assert passed + (rest if isinstance(rest, bytes) else b"") == stream
    assert gate.content() == stream


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("stream", FAILED)
def test_the_failure_is_held_back(stream: bytes, size: int) -> None:
    gate, passed = run(stream, size)
    beginnings = (b"event: error", b"event:error", b"\nerror: {", b'data: {"error"', b'data:{"error"')
    found = next(found for one in beginnings if (found := stream.rfind(one)) >= 0)
    start = found + stream.startswith(b"\n", found)
    assert gate.failure is not None
    assert passed == stream[:start]
    assert gate.held == stream[start:]
    assert gate.content() == passed


@pytest.mark.parametrize("stream", FAILED)
def test_what_is_held_goes_out_at_the_end_unless_it_is_replaced(stream: bytes) -> None:
    gate, passed = run(stream, 10_000)
    assert passed + bytes(gate(b"")) == stream  # type: ignore[arg-type]
    gate, passed = run(stream, 10_000)
    gate.held.clear()
    gate.ready = [b"tail"]
    assert gate.take() == [b"tail"]
    assert gate(b"") == []
    assert gate.content() == passed + b"tail"


@pytest.mark.parametrize("chunk", [CHUNK, CHUNK * 5, b"data: [DONE]\n\n", b": ping\n\n", OTHER, b"\n"])
def test_whole_events_keep_their_chunks(chunk: bytes) -> None:
    gate = FailureGate()
    for _ in range(3):
        assert gate(chunk) == chunk


def test_little_is_held_of_what_comes_after_the_failure() -> None:
    gate = FailureGate()
    gate(FAILURE)
    for _ in range(20_000):
        assert gate(b"x" * 1000) == []
    assert len(gate.held) < 3_000_000


@pytest.mark.parametrize("beginning", [FAILURE[:-2], b"event: error\n"])
def test_small_pieces_of_a_long_event_take_linear_time(beginning: bytes) -> None:
    def seconds(size: int) -> float:
        gate = FailureGate()
        gate(beginning)
        started = time.perf_counter()
        for _ in range(size):
            assert gate(b"x") == []
        return time.perf_counter() - started

    assert min(seconds(400_000) for _ in range(2)) < 16 * min(seconds(50_000) for _ in range(2))


PIECES = [CHUNK, NAMED, OTHER, FAILURE, b"data: ", b'{"error"', b'data: {"er', b"\n", b"\r\n", b"error: {", b"x"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.integers(1, 40))
def test_nothing_is_lost_or_changed(stream: bytes, size: int) -> None:
    gate, passed = run(stream, size)
    assert passed + gate.held == stream
    whole, passed_whole = run(stream, len(stream) or 1)
    assert (passed_whole, whole.failure) == (passed, gate.failure)
