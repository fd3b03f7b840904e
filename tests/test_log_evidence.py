"""Turns that are recovered with the log of a real engine, behind a stand-in for Docker Model Runner."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine, write_model
from tests.engine.model_runner import ModelRunner
from tests.engine.proxy import Proxy
from tests.engine.scripts import REPORT_PROMPT, SCRIPTS, TOOLS, call
from tests.engine.streams import Streamed, accumulate
from tests.test_recovery import BOTH_FILES, calls_of
from tests.waiting import wait_until

BY_LOG = ["x-pegmend: repaired; evidence=stream+log; calls=2"]
BY_REPLAY = ["x-pegmend: repaired; evidence=replay; calls=2"]


@pytest.fixture(scope="module")
def runner(engine: Engine) -> Iterator[ModelRunner]:
    with ModelRunner(engine) as running:
        yield running


@pytest.fixture(scope="module")
def client(runner: ModelRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with Proxy(runner.origin, tmp_path_factory.mktemp("proxy")) as proxy, following_client(proxy) as client:
        # The second run of the first failure shows which entry is its: the engine's clock is known from then on.
        stream(client, "semicolon")
        yield client


@contextmanager
def following_client(proxy: Proxy) -> Iterator[httpx.Client]:
    """Yield a client of a proxy that follows the log: it begins with the first request, behind what was logged."""
    with proxy.client() as client:
        assert client.post(CHAT_PATH, json=chat_request("single", tool_choice="none")).status_code == 200
        wait_until(lambda: "following the log" in proxy.log_text())
        yield client


def stream(client: httpx.Client, script: str, **members: object) -> Streamed:
    return accumulate(client.post(CHAT_PATH, json=chat_request(script, stream=True, **members)).text)


@pytest.mark.parametrize("script", ["newline", "semicolon", "semicolon-space", "pretty"])
def test_prefix_and_remainder_make_the_turn(client: httpx.Client, script: str) -> None:
    streamed = stream(client, script)
    assert streamed.comments == BY_LOG
    assert streamed.calls == BOTH_FILES
    assert streamed.finish_reasons == {0: "tool_calls"}
    assert streamed.is_done
    assert streamed.messages[0]["content"] == ""


@pytest.mark.parametrize("script", ["comma", "arguments-key", "arguments-first", "prose-around"])
def test_where_they_do_not_for_certain_the_engine_runs_again(client: httpx.Client, script: str) -> None:
    streamed = stream(client, script)
    assert streamed.comments == BY_REPLAY
    assert streamed.calls == BOTH_FILES


def test_a_call_that_the_parser_takes_back_is_delivered_once(client: httpx.Client) -> None:
    streamed = stream(client, "extra-member", parallel_tool_calls=True)
    assert [name for name, _ in streamed.calls] == ["write_file", "read_file", "get_time"]
    assert streamed.comments == ["x-pegmend: repaired; evidence=replay; calls=3"]


def test_words_that_the_engine_cuts_by_a_limit_of_its_own(tmp_path: Path, start_proxy: Callable[..., Proxy]) -> None:
    calls = f"{call('read_file', path='a.txt')}; {call('read_file', path='b.txt')}"
    texts = {"calls": [calls], "words": [f"{calls}\nAnd now I will list the folder, so that you know what is in it."]}
    model = tmp_path / "scripted.gguf"
    write_model(model, texts, default="calls", merged=set())
    with (
        Engine(model, tmp_path / "log", arguments=["--predict", "34"]) as engine,
        following_client(start_proxy(engine.origin, options=[f"pegmend_log=file:{engine.log}"])) as client,
    ):
        assert stream(client, "calls").comments == BY_REPLAY
        assert stream(client, "calls").comments == BY_LOG
        streamed = stream(client, "words")
    assert streamed.comments == BY_REPLAY
    assert streamed.finish_reasons == {0: "length"}
    assert streamed.messages[0]["content"].startswith("And now")


def test_token_counts_come_from_the_second_run(client: httpx.Client) -> None:
    streamed = stream(client, "newline", stream_options={"include_usage": True})
    assert streamed.comments == BY_REPLAY
    assert streamed.usage is not None


def test_a_turn_that_was_not_streamed_is_checked_against_the_log(client: httpx.Client) -> None:
    response = client.post(CHAT_PATH, json=chat_request("newline"))
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=2"


def test_without_a_second_run_the_end_of_a_turn_is_no_proof(
    runner: ModelRunner, start_proxy: Callable[..., Proxy]
) -> None:
    with following_client(start_proxy(runner.origin, options=["pegmend_replay=false"])) as client:
        response = client.post(CHAT_PATH, json=chat_request("newline"))
        streamed = stream(client, "newline")
    error = response.json()["error"]
    assert error["code"] == "tool_calls_incomplete"
    assert [one["name"] for one in error["recovered_tool_calls"]] == ["write_file"]
    assert response.headers["x-pegmend"] == "error; evidence=log; calls=0; code=tool_calls_incomplete"
    assert streamed.comments == BY_LOG


def test_incomplete_turns_are_delivered_to_those_who_ask_for_them(
    runner: ModelRunner, start_proxy: Callable[..., Proxy]
) -> None:
    options = ["pegmend_replay=false", "pegmend_incomplete=deliver"]
    with following_client(start_proxy(runner.origin, options=options)) as client:
        response = client.post(CHAT_PATH, json=chat_request("newline"))
    assert response.headers["x-pegmend"] == "incomplete; evidence=log; calls=1"
    assert calls_of(response.json()["choices"][0]["message"]) == BOTH_FILES[1:]


def test_the_entry_of_a_client_that_bypasses_the_proxy_is_not_taken(runner: ModelRunner, client: httpx.Client) -> None:
    request = chat_request("fifty", stream=True)
    with (
        httpx.Client(base_url=runner.origin, trust_env=False, timeout=60) as bypassing,
        client.stream("POST", CHAT_PATH, json=request) as response,
    ):
        bypassing.post(CHAT_PATH, json=chat_request("cut"))
        streamed = accumulate("".join(response.iter_text()))
    assert streamed.is_done
    assert [arguments["path"] for _, arguments in streamed.calls] == [f"in/{number}.txt" for number in range(50)]


@pytest.mark.parametrize("delay", [0.1, 0.25, 0.6])
def test_the_late_entry_of_another_client_is_not_taken(
    engine: Engine, start_proxy: Callable[..., Proxy], delay: float
) -> None:
    with (
        ModelRunner(engine, delay=delay) as late,
        following_client(start_proxy(late.origin)) as client,
        httpx.Client(base_url=engine.origin, trust_env=False, timeout=60) as bypassing,
    ):
        for _ in range(6):
            bypassing.post(CHAT_PATH, json=chat_request("semicolon"))
            streamed = stream(client, "unicode")
            assert [name for name, _ in streamed.calls] == ["write_file", "read_file"]
            assert streamed.is_done


@pytest.mark.parametrize("script", ["log-like", "log-forged"])
def test_prose_that_begins_like_a_line_of_the_log(client: httpx.Client, script: str) -> None:
    streamed = stream(client, script)
    assert [name for name, _ in streamed.calls] == ["write_file", "read_file", "get_time"]
    whole = client.post(CHAT_PATH, json=chat_request(script))
    assert whole.headers["x-pegmend"] == "repaired; evidence=replay; calls=3"


def test_a_turn_that_may_be_cut_is_asked_for_again(client: httpx.Client) -> None:
    assert stream(client, "newline", max_tokens=500).comments == BY_REPLAY


def test_a_log_that_comes_late_is_not_waited_for_nor_mistaken(
    engine: Engine, start_proxy: Callable[..., Proxy]
) -> None:
    with (
        ModelRunner(engine, delay=1.0) as late,
        following_client(start_proxy(late.origin, options=["pegmend_log_wait_ms=200"])) as client,
    ):
        assert stream(client, "newline").comments == BY_REPLAY
        time.sleep(0.9)  # now the entry of the first one comes while the second one runs
        second = stream(client, "fifty")
    assert second.comments == ["x-pegmend: repaired; evidence=replay; calls=50"]
    assert len(second.calls) == 50


def test_two_requests_that_fail_together_get_their_own_calls(client: httpx.Client) -> None:
    scripts = ["newline", "semicolon", "unicode", "no-arguments"] * 4
    with ThreadPoolExecutor(len(scripts)) as pool:
        together = list(pool.map(lambda script: stream(client, script).calls, scripts))
    assert together == [stream(client, script).calls for script in scripts]


def test_a_log_with_the_whole_text(tmp_path: Path, start_proxy: Callable[..., Proxy]) -> None:
    model = tmp_path / "scripted.gguf"
    write_model(model, {"array": SCRIPTS["array"]}, default="array")  # no token of ours in the generation prompt
    request = {"model": "m", "messages": [{"role": "user", "content": REPORT_PROMPT}], "tools": TOOLS}
    with (
        Engine(model, tmp_path / "log", arguments=["-lv", "5"]) as engine,
        ModelRunner(engine) as runner,
        following_client(start_proxy(runner.origin, options=["pegmend_replay=false"])) as client,
    ):
        whole = client.post(CHAT_PATH, json=request)
        streamed = accumulate(client.post(CHAT_PATH, json={**request, "stream": True}).text)
    assert whole.headers["x-pegmend"] == "repaired; evidence=full; calls=2"
    assert calls_of(whole.json()["choices"][0]["message"]) == BOTH_FILES
    assert streamed.comments == ["x-pegmend: repaired; evidence=full; calls=2"]
    assert streamed.calls == BOTH_FILES


@pytest.mark.parametrize("kind", ["file", "command"])
def test_other_sources(engine: Engine, start_proxy: Callable[..., Proxy], tmp_path: Path, kind: str) -> None:
    source = f"file:{engine.log}" if kind == "file" else f"command:tail -n +1 -f {engine.log}"
    with following_client(start_proxy(options=[f"pegmend_log={source}"])) as client:
        assert stream(client, "newline").comments == BY_REPLAY  # the engine's clock is set by the first failure
        assert stream(client, "newline").comments == BY_LOG


@pytest.mark.parametrize("setting", ["off", "http", "file:/nowhere/x.log", "command:false"])
def test_without_a_log_the_second_run_is_enough(start_proxy: Callable[..., Proxy], setting: str) -> None:
    with start_proxy(options=[f"pegmend_log={setting}"]).client() as client:
        assert stream(client, "newline").comments == BY_REPLAY
