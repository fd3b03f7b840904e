"""Requests that the engine refuses although they are clear: each fails directly and works through pegmend."""

import gzip
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from pegmend.cli import main
from tests.conftest import CHAT_PATH, chat_request, two_calls
from tests.engine import Engine, write_model
from tests.engine.canned import CannedUpstream, http_response, in_turn
from tests.engine.model_runner import ModelRunner
from tests.engine.proxy import Proxy
from tests.engine.scripts import SCRIPTS
from tests.engine.server import TEMPLATE
from tests.engine.streams import accumulate
from tests.test_captures import flows_in
from tests.test_outgoing import body_received
from tests.test_streams import chunked

PLAIN = SCRIPTS["plain"][0]
JSON_TYPE = {"Content-Type": "application/json"}


def spoiled(place: str, text: bytes) -> bytes:
    """Return a request for plain words with `text` (JSON's inside of a string) in one of the places of a body."""
    call = {"id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "TOOL_CALL"}'}}
    request = chat_request("plain", seed=1)
    request["messages"] += [
        {"role": "assistant", "content": "ASSISTANT", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "RESULT"},
        {"role": "user", "content": "USER script:plain "},
    ]
    request["tools"][0]["function"]["description"] = "DESCRIPTION"
    assert place in json.dumps(request)
    return json.dumps(request).encode().replace(place.encode(), text)


@pytest.mark.parametrize("place", ["USER", "ASSISTANT", "RESULT", "DESCRIPTION"])
@pytest.mark.parametrize(
    "text",
    [
        b"d\xe9cor",
        b"\x93quoted\x94 \x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
        b"\xc0\x80",
        b"\xc0\xaf",
        b"cut \xe2\x82",
        b"\\ud83d",
        b"line\nline",
        b"nul \x00",
    ],
)
def test_ill_formed_text(direct: httpx.Client, mended: httpx.Client, place: str, text: bytes) -> None:
    body = spoiled(place, text)
    refused = direct.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    assert refused.status_code >= 400
    response = mended.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    assert response.status_code == 200
    assert response.headers["x-pegmend"] == "request=bytes"
    assert response.json()["choices"][0]["message"]["content"] == PLAIN


@pytest.mark.parametrize("text", [b"line\\nline", b"\\\\ud83d", b"d\xe9cor"])
def test_ill_formed_text_in_arguments(direct: httpx.Client, mended: httpx.Client, text: bytes) -> None:
    body = spoiled("TOOL_CALL", text)
    assert direct.post(CHAT_PATH, content=body, headers=JSON_TYPE).status_code == 500
    response = mended.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    assert response.json()["choices"][0]["message"]["content"] == PLAIN
    assert response.headers["x-pegmend"] in ("request=arguments", "request=bytes")


@pytest.mark.parametrize("arguments", ["", None, '{"path": NaN}'])
def test_arguments_that_are_no_json(direct: httpx.Client, mended: httpx.Client, arguments: str | None) -> None:
    function = {"name": "read_file"} | ({} if arguments is None else {"arguments": arguments})
    call = {"id": "1", "type": "function", "function": function}
    request = chat_request("plain")
    request["messages"].insert(0, {"role": "user", "content": "Hello."})
    request["messages"][1:1] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]
    assert direct.post(CHAT_PATH, json=request).status_code == 500
    response = mended.post(CHAT_PATH, json=request)
    assert response.json()["choices"][0]["message"]["content"] == PLAIN
    assert response.headers["x-pegmend"] == "request=arguments"


@pytest.mark.parametrize(
    ("encoding", "content_type"),
    [
        ("utf-16", "application/json"),
        ("utf-16-le", "application/json"),
        ("utf-32", "application/json"),
        ("cp1252", 'application/json; charset="iso-8859-1"'),
        ("gb18030", "application/json; charset=gb18030"),
    ],
)
def test_whole_bodies_in_another_encoding(
    direct: httpx.Client, mended: httpx.Client, encoding: str, content_type: str
) -> None:
    request = chat_request("plain", seed=1)
    request["messages"].insert(0, {"role": "system", "content": "é is a letter."})
    body = json.dumps(request, ensure_ascii=False).encode(encoding)
    headers = {"Content-Type": content_type}
    assert direct.post(CHAT_PATH, content=body, headers=headers).status_code >= 400
    response = mended.post(CHAT_PATH, content=body, headers=headers)
    assert response.json()["choices"][0]["message"]["content"] == PLAIN


def test_numbers_that_json_does_not_have(direct: httpx.Client, mended: httpx.Client) -> None:
    body = json.dumps(chat_request("plain", presence_penalty=float("nan"))).encode()
    assert direct.post(CHAT_PATH, content=body, headers=JSON_TYPE).status_code == 500
    assert mended.post(CHAT_PATH, content=body, headers=JSON_TYPE).status_code == 200


def test_what_arrives_is_changed_only_where_it_was_ill_formed(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(http_response(200, b"{}"))) as upstream:
        proxy = start_proxy(upstream.origin)
        body = b'{ "a" : "d\xe9cor" ,"b":1.50, "c":"\\u00e9" }'
        assert body_received(upstream, proxy, body) == body.replace(b"\xe9", "é".encode())
        head = upstream.requests[-1].partition(b"\r\n\r\n")[0].lower()
        assert b"content-length: %d" % (len(body) + 1) in head
        with proxy.client() as client:
            client.post(CHAT_PATH, content=gzip.compress(body), headers={"Content-Encoding": "gzip"})
            declared = {"Content-Type": "application/json; charset=latin-1; x=y"}
            client.post(CHAT_PATH, content=body, headers=declared)
    assert gzip.decompress(upstream.requests[-2].partition(b"\r\n\r\n")[2]) == body.replace(b"\xe9", "é".encode())
    assert b"content-type: application/json; charset=utf-8; x=y" in upstream.requests[-1].lower()


def test_a_body_that_cannot_be_repaired_is_told(direct: httpx.Client, proxy: Proxy, mended: httpx.Client) -> None:
    body = b'{"messages": [{"role": "user", "content": "d\xe9cor'
    ours = mended.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    theirs = direct.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
    assert "is not JSON: " in proxy.log_text()


def test_a_long_repair_keeps_nobody_else_waiting(start_proxy: Callable[..., Proxy]) -> None:
    body = b'{"messages": [{"role": "user", "content": "' + b"\xe9" * 2_000_000 + b'"}]}'
    with CannedUpstream(in_turn(DONE)) as upstream:
        proxy = start_proxy(upstream.origin, options=["pegmend_capture=off"])
        with proxy.client() as long, proxy.client() as short, ThreadPoolExecutor(1) as pool:
            short.get("/health")
            repairing = pool.submit(long.post, CHAT_PATH, content=body, headers=JSON_TYPE)
            waits = []
            while not repairing.done():
                started = time.monotonic()
                short.get("/health")
                waits.append(time.monotonic() - started)
            assert repairing.result().headers["x-pegmend"] == "request=bytes"
    assert max(waits) < sum(waits) / 2


def test_repairs_can_be_switched_off(start_proxy: Callable[..., Proxy]) -> None:
    with start_proxy(options=["pegmend_repair_requests=false"]).client() as client:
        assert client.post(CHAT_PATH, content=spoiled("USER", b"d\xe9cor"), headers=JSON_TYPE).status_code == 500


def test_mojibake_is_left_alone_unless_asked_for(start_proxy: Callable[..., Proxy]) -> None:
    request = {"messages": [{"role": "tool", "content": "dÃ©cor"}, {"role": "user", "content": "dÃ©cor"}]}
    body = json.dumps(request, ensure_ascii=False).encode()
    with CannedUpstream(in_turn(http_response(200, b"{}"))) as upstream:
        assert body_received(upstream, start_proxy(upstream.origin), body) == body
        proxy = start_proxy(upstream.origin, options=["pegmend_mojibake=true"])
        messages = json.loads(body_received(upstream, proxy, body))["messages"]
    assert [message["content"] for message in messages] == ["décor", "dÃ©cor"]


def test_records_and_replay_show_repairs(start_proxy: Callable[..., Proxy], capsys: pytest.CaptureFixture[str]) -> None:
    proxy = start_proxy()
    body = spoiled("USER", b"d\xe9cor").replace(b"script:plain", b"script:newline")
    with proxy.client() as client:
        response = client.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=2; request=bytes"
    (flow,) = flows_in(proxy.captures)
    record = flow.metadata["pegmend"]
    assert record["original_request"] == body
    assert record["request"] == ["bytes"]
    assert "Windows-1252" in record["request_notes"][0]
    assert flow.marked
    assert flow.comment == "pegmend: repaired; evidence=replay; calls=2; request=bytes"
    (path,) = proxy.captures.iterdir()
    assert main(["replay", str(path)]) == 0
    assert "repaired: write_file, write_file (request repaired: bytes)" in capsys.readouterr().out


def test_the_template_refuses_two_calls_in_one_message(direct: httpx.Client) -> None:
    response = direct.post(CHAT_PATH, json=two_calls())
    assert response.status_code == 400
    assert "single tool-c" in response.text


@pytest.mark.parametrize("stream", [False, True])
def test_they_are_unfolded(mended: httpx.Client, stream: bool) -> None:
    response = mended.post(CHAT_PATH, json=two_calls(stream=stream))
    assert response.status_code == 200
    assert response.headers["x-pegmend"] == "request=unfolded"


def counting_runner(engine: Engine) -> tuple[ModelRunner, Callable[[], int]]:
    """Return a stand-in without a log, and the number of prompts that its engine has taken up so far."""
    return ModelRunner(engine, has_log=False), lambda: engine.log_text().count("processing task, is_child = 0")


def test_without_props_one_token_is_asked_for_once(engine: Engine, start_proxy: Callable[..., Proxy]) -> None:
    runner, prompts = counting_runner(engine)
    with runner, start_proxy(runner.origin).client() as client:
        before = prompts()
        for _ in range(3):
            assert client.post(CHAT_PATH, json=two_calls()).status_code == 200
        assert prompts() - before == 3  # what the template refuses is no prompt
        for _ in range(2):
            assert client.post(CHAT_PATH, json=chat_request("plain")).status_code == 200
        assert prompts() - before == 5


@pytest.fixture(scope="module")
def taking_engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An engine whose template takes several calls in one message."""
    folder = tmp_path_factory.mktemp("taking")
    text = TEMPLATE.read_text("utf-8")
    start = text.index("        {%- if message.tool_calls | length != 1 -%}")
    end = text.index("    {%- elif message.role == ")
    each = """{%- for one in message.tool_calls -%}
            {{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" -}}
            {{- '{"name": "' + one.function.name + '", "parameters": ' + (one.function.arguments | tojson) + "}" -}}
            {{- "<|eot_id|>" -}}
        {%- endfor -%}
"""
    (folder / "template.jinja").write_text(text[:start] + each + text[end:], "utf-8")
    write_model(folder / "scripted.gguf", SCRIPTS, default="newline")
    with Engine(folder / "scripted.gguf", folder / "log", template=folder / "template.jinja") as running:
        yield running


@pytest.mark.parametrize("behind_model_runner", [False, True])
def test_templates_that_take_them_never_see_an_unfolded_history(
    taking_engine: Engine, start_proxy: Callable[..., Proxy], behind_model_runner: bool
) -> None:
    with ModelRunner(taking_engine, has_log=False) as runner:
        proxy = start_proxy(runner.origin if behind_model_runner else taking_engine.origin)
        with proxy.client() as client:
            for _ in range(2):
                response = client.post(CHAT_PATH, json=two_calls(seed=1))
                assert response.status_code == 200
                assert "x-pegmend" not in response.headers
        proxy.stop()
    sent = [json.loads(flow.request.content or b"") for flow in flows_in(proxy.captures)]
    assert [len(request["messages"][1]["tool_calls"]) for request in sent] == [2, 2]


REFUSAL_BODY = b'{"error":{"code":400,"message":"... single tool-calls at once!"}}'
REFUSAL = http_response(400, REFUSAL_BODY, "Content-Type: text/x")
CHUNKED_REFUSAL = chunked(REFUSAL_BODY, status=400, content_type="application/json")
NEITHER = http_response(503, b'{"error":{"message":"loading"}}')
DONE = http_response(200, b'{"choices":[]}', "Content-Type: application/json")


@pytest.mark.parametrize(("text", "kinds"), [(b"What", ["unfolded"]), (b"Wh\xe9t", ["bytes", "unfolded"])])
def test_what_is_done_after_a_refusal_is_visible(
    start_proxy: Callable[..., Proxy], text: bytes, kinds: list[str]
) -> None:
    body = json.dumps(two_calls()).encode().replace(b"What", text)
    with CannedUpstream(in_turn(NEITHER, NEITHER, REFUSAL, DONE)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            response = client.post(CHAT_PATH, content=body, headers=JSON_TYPE)
    header = f"request={','.join(kinds)}"
    assert response.headers["x-pegmend"] == header
    (flow,) = flows_in(proxy.captures)
    record = flow.metadata["pegmend"]
    assert record["original_request"] == body
    assert record["request"] == kinds
    assert [note.partition(" ")[0] for note in record["request_notes"]] == ["byte", "messages:"][-len(kinds) :]
    assert flow.marked
    assert flow.comment == f"pegmend: {header}"
    assert "request repaired: messages: unfolded" in proxy.log_text()


def messages_sent(upstream: CannedUpstream) -> list[int]:
    """Return how many messages each chat request had."""
    bodies = [request.partition(b"\r\n\r\n")[2] for request in upstream.requests if request.startswith(b"POST")]
    return [len(json.loads(body)["messages"]) for body in bodies]


@pytest.mark.parametrize("refusal", [REFUSAL, CHUNKED_REFUSAL], ids=["with length", "chunked"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_template_that_refuses_only_now(start_proxy: Callable[..., Proxy], stream: bool, refusal: bytes) -> None:
    events = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'
    unfolded = http_response(200, events, "Content-Type: text/event-stream") if stream else DONE
    answers = in_turn(NEITHER, NEITHER, refusal, unfolded)
    with CannedUpstream(answers) as upstream, start_proxy(upstream.origin).client() as client:
        response = client.post(CHAT_PATH, json=two_calls(stream=stream))
        again = client.post(CHAT_PATH, json=two_calls(stream=stream))
    assert response.status_code == again.status_code == 200
    assert response.content == (events if stream else b'{"choices":[]}')
    assert response.headers["x-pegmend"] == again.headers["x-pegmend"] == "request=unfolded"
    assert messages_sent(upstream) == [5, 5, 6, 6]


@pytest.mark.parametrize(("setting", "status"), [("off", 400), ("always", 200)])
def test_unfolding_can_be_switched(start_proxy: Callable[..., Proxy], setting: str, status: int) -> None:
    with start_proxy(options=[f"pegmend_unfold={setting}"]).client() as client:
        assert client.post(CHAT_PATH, json=two_calls()).status_code == status


def test_what_is_known_is_forgotten_with_another_fingerprint(start_proxy: Callable[..., Proxy]) -> None:
    def done(fingerprint: str) -> bytes:
        return http_response(200, json.dumps({"system_fingerprint": fingerprint}).encode())

    answers = in_turn(NEITHER, REFUSAL, done("a"), done("a"), done("b"), NEITHER, done("b"), done("b"))
    with CannedUpstream(answers) as upstream, start_proxy(upstream.origin).client() as client:
        for _ in range(4):
            client.post(CHAT_PATH, json=two_calls())
    assert messages_sent(upstream) == [5, 6, 6, 6, 5, 5]


@pytest.fixture(scope="module")
def short_id_engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An engine whose template wants ids of nine letters and digits, as Mistral's do."""
    folder = tmp_path_factory.mktemp("ids")
    text = TEMPLATE.read_text("utf-8")
    place = "        {%- set call = message.tool_calls[0].function -%}\n"
    rule = """        {%- if message.tool_calls[0].id | length != 9 -%}
            {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") -}}
        {%- endif -%}
"""
    assert place in text
    (folder / "template.jinja").write_text(text.replace(place, rule + place), "utf-8")
    write_model(folder / "scripted.gguf", {**SCRIPTS}, default="newline")
    with Engine(folder / "scripted.gguf", folder / "log", template=folder / "template.jinja") as running:
        yield running


@pytest.mark.parametrize("stream", [False, True])
def test_ids_that_the_template_refuses(
    short_id_engine: Engine, start_proxy: Callable[..., Proxy], stream: bool
) -> None:
    request = two_calls(stream=stream)
    with httpx.Client(base_url=short_id_engine.origin, trust_env=False) as direct:
        single = {**request, "messages": [*request["messages"][:1], *request["messages"][4:]]}
        single["messages"][1:1] = [
            {"role": "assistant", "content": None, "tool_calls": request["messages"][1]["tool_calls"][:1]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
        ]
        assert "length 9" in direct.post(CHAT_PATH, json=single).text
    with start_proxy(short_id_engine.origin).client() as client:
        for _ in range(2):
            response = client.post(CHAT_PATH, json=request)
            assert response.status_code == 200
            assert response.headers["x-pegmend"] == "request=unfolded,ids"
            assert "Both files already exist" in "".join(
                accumulate(response.text).messages[0]["content"] if stream else response.text
            )
