"""The formats of the families: the real engine, with a template of each, is the judge of what pegmend reads.

What the engine reads by itself, pegmend reads the same. What it refuses, pegmend repairs, or answers with an error.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pegmend.rawoutput import read
from tests.conftest import CHAT_PATH
from tests.engine import Engine, write_model
from tests.engine.families import FAMILIES, Call, FormatFamily
from tests.engine.proxy import Proxy
from tests.engine.server import free_port
from tests.engine.streams import accumulate
from tests.test_recovery import calls_of

TOOLS: dict[str, dict[str, Any]] = {
    "write_file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
    "get_time": {"type": "object", "properties": {}},
    "add_event": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "guests": {"type": "integer"},
            "price": {"type": "number"},
            "is_public": {"type": "boolean"},
            "place": {
                "type": "object",
                "properties": {
                    "room": {"type": "string"},
                    "seats": {"type": "array", "items": {"type": "integer"}},
                },
            },
            "days": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["title", "guests", "price", "is_public", "place", "days"],
    },
    "add_note": {
        "type": "object",
        "properties": {key: {"type": "string"} for key in ("code", "state", "data", "text", "tail")},
        "required": ["code", "state", "data", "text", "tail"],
    },
}
A: Call = ("write_file", {"path": "reports/summary.md", "content": "Daily summary: all tasks complete."})
B: Call = ("write_file", {"path": "logs/log1.txt", "content": "Log entry 1: system start."})
EVENT: dict[str, Any] = {
    "title": "Dinner, 8 pm",
    "guests": 12,
    "price": -1.5,
    "is_public": True,
    "place": {"room": "12 <b>", "seats": [1, 2]},
    "days": ["Monday", "1"],
}
NOTE = {
    "code": "007",
    "state": "null",
    "data": '{"a": [1]}',
    "text": "if a < b and \"c\":\n\tsay('d\\n')  # 漢字 😀\n",
    "tail": "",
}


LONG_WORDS = "I will write the file that you have asked for, and then say that it is written. " * 3 + "So."


@dataclass(frozen=True)
class Turn:
    """What a model means."""

    calls: list[Call]
    words: str = ""
    thoughts: str = ""


TURNS = {
    "one": Turn([A]),
    "two": Turn([A, B]),
    "no-arguments": Turn([("get_time", {})]),
    "words": Turn([A], "I will write it."),
    "thoughts": Turn([A], "", "A file is asked for."),
    "thoughts-and-words": Turn([A], "I will write it.", "A file is asked for."),
    "types": Turn([("add_event", EVENT)]),
    "strings": Turn([("add_note", NOTE)]),
    "blank": Turn([("write_file", {"path": "a.txt", "content": " "})]),
}
NOT_READ = {
    # The engine's grammar ends the turn after the first call.
    **{name: {"two"} for name in ("minimax-m1", "minimax-m2", "dots", "gpt-oss")},
    "gigachat": {"two", "thoughts", "thoughts-and-words"},
    # The format has no words beside calls.
    "cohere-r7b": {"words", "thoughts-and-words"},
    # The engine refuses these, see REFUSED.
    "cohere2moe": {"words", "thoughts-and-words"},
    "functionary-v3.1": TURNS.keys(),
    "functiongemma": TURNS.keys(),
    "llama3": {"two"},
    "minicpm5": TURNS.keys() - {"thoughts", "thoughts-and-words"},
    # The engine's grammar fails where words or a call stand before a call. The format has no thoughts.
    "functionary-v3.2": {"two", "words", "thoughts", "thoughts-and-words"},
}
READ = {name: [turn for turn in TURNS if turn not in NOT_READ.get(name, ())] for name in FAMILIES}


@dataclass(frozen=True)
class Refused:
    """What a model says that leaves its format, and what pegmend makes of it: a turn, or an error."""

    text: str
    turn: Turn
    code: str = ""


def _variants(family: FormatFamily) -> dict[str, Refused]:
    one, other = family.say([A]), family.say([B]).removeprefix(family.after_thoughts)
    unknown = ("write_file", {**A[1], "mode": "w"})
    mistyped = ("add_event", {**EVENT, "guests": "a few"})
    incomplete = ("write_file", {"path": "a.txt"})
    deletion = ("delete_all", {"path": "/"})
    return {
        **{name: Refused(family.say(turn.calls, turn.words, turn.thoughts), turn) for name, turn in TURNS.items()},
        "text-after": Refused(f"{one}\nThat was the first file.", Turn([A], "That was the first file.")),
        "types-and-text-after": Refused(
            f"{family.say(TURNS['types'].calls)}\nDone.", Turn(TURNS["types"].calls, "Done.")
        ),
        "text-between": Refused(f"{one}\nNow the log:\n{other}", Turn([A, B], "Now the log:")),
        "two-sections": Refused(f"{one}\n{other}", Turn([A, B])),
        "no-line-breaks": Refused(one.replace("\n", ""), Turn([A])),
        "blank-before": Refused(f"\n\n{one}", Turn([A])),
        "bare-recipient": Refused(one.replace("to=functions.", "to="), Turn([A])),
        "thoughts-and-bare-recipient": Refused(
            family.say([A], "", "A file is asked for.").replace("to=functions.", "to="),
            Turn([A], "", "A file is asked for."),
        ),
        "words-and-bare-recipient": Refused(
            family.say([A], LONG_WORDS).replace("to=functions.", "to="), Turn([A], LONG_WORDS)
        ),
        "unknown-parameter": Refused(family.say([unknown]), Turn([unknown])),
        "incomplete": Refused(family.say([incomplete]), Turn([incomplete])),
        "mistyped": Refused(family.say([mistyped]), Turn([mistyped])),
        "undeclared": Refused(family.say([A, deletion]), Turn([]), "tool_calls_undeclared"),
    }


_AROUND = ["text-after", "types-and-text-after", "text-between", "undeclared"]
_SECTIONS = [*_AROUND, "two-sections"]
_ARGUMENTS = ["unknown-parameter", "incomplete", "mistyped"]
_UNKNOWN = ["one", "two", "words", "types", "strings", *_AROUND, *_ARGUMENTS]
REFUSED = {
    "glm": [*_AROUND, *_ARGUMENTS, "no-line-breaks"],
    "glm-compact": [*_AROUND, *_ARGUMENTS],
    "k2-horizon": _SECTIONS,
    "mistral-v11": _AROUND,
    "deepseek-r1": _SECTIONS,
    "deepseek-v3.1": _SECTIONS,
    "dots": ["two", *_SECTIONS],
    "step3": [*_SECTIONS, *_ARGUMENTS],
    "lfm2": [*_SECTIONS, "unknown-parameter"],
    "lfm2.5": _SECTIONS,
    "gpt-oss": ["bare-recipient", "blank-before", "thoughts-and-bare-recipient", "words-and-bare-recipient"],
    "muse": ["unknown-parameter", "mistyped"],
    "cohere-r7b": _SECTIONS,
    # The engine knows this format by a line of its original template.
    "functionary-v3.1": _UNKNOWN,
    # The engine does not know this format.
    "functiongemma": _UNKNOWN,
    # The engine wants thoughts in front of every call.
    "minicpm5": _UNKNOWN,
    "granite3": _SECTIONS,
    "nemotron": _SECTIONS,
    "apriel": _SECTIONS,
    "jamba": _SECTIONS,
    "longcat": _AROUND,
    "internlm": _AROUND,
    "apertus": _SECTIONS,
    "plamo3": _SECTIONS,
    "llama3": ["two", *_SECTIONS],
    # The engine refuses the raw text of these as well.
    "cohere2moe": ["words", "thoughts-and-words", *_SECTIONS],
    "functionary-v3.2": ["text-after", "two", "words"],
}


UNSENT = {("functionary-v3.2", "words")}
"""Here the engine has sent a part of the marker behind the words as if it were one of them."""


def _cases(table: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


_BIAS = 10
"""Less than what leads from one piece of a text to the next."""


class Rig:
    """An engine with a template of a family and a model that says all of the family's texts."""

    def __init__(self, family: FormatFamily, folder: Path, port: int) -> None:
        self.family = family
        self.refused = _variants(family)
        names = {turn for table in (READ, REFUSED) for turn in table.get(family.name, ())}
        self.texts = {name: self.refused[name].text for name in names}
        markers = list(filter(None, [family.prompt, family.marker]))
        scripts = {name: [text] for name, text in sorted(self.texts.items())}
        self._firsts = write_model(folder / "scripted.gguf", scripts, default=None, markers=markers)
        template = folder / "template.jinja"
        template.write_text(family.template, "utf-8")
        self.engine = Engine(folder / "scripted.gguf", folder / "log", template=template, port=port)

    def request(self, name: str) -> dict[str, Any]:
        """Return a request that makes the model say a text."""
        tools = [
            {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}
            for name, parameters in TOOLS.items()
        ]
        messages = [{"role": "user", "content": "Do it."}]
        bias = [[self._firsts[name], _BIAS]]
        return {"messages": messages, "tools": tools, "logit_bias": bias, "temperature": 0, "max_tokens": 400}


@pytest.fixture(scope="module")
def port() -> int:
    """The port of all the engines, one after the other."""
    return free_port()


@pytest.fixture(scope="module")
def proxy(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def rig(request: pytest.FixtureRequest, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    running = Rig(FAMILIES[request.param], tmp_path_factory.mktemp("family"), port)
    with running.engine:
        yield running


@pytest.fixture(scope="module")
def repaired(rig: Rig, proxy: Proxy) -> Iterator[httpx.Client]:
    """A client that talks to the engine through pegmend."""
    with proxy.client() as client:
        yield client


@pytest.fixture(scope="module")
def straight(rig: Rig) -> Iterator[httpx.Client]:
    """A client that talks to the engine itself."""
    with httpx.Client(base_url=rig.engine.origin, trust_env=False, timeout=60) as client:
        yield client


def as_turn(message: dict[str, Any]) -> Turn:
    words, thoughts = message.get("content"), message.get("reasoning_content")
    calls = calls_of(message) if "tool_calls" in message else []
    return Turn(calls, (words or "").strip(), (thoughts or "").strip())


def is_refusal(response: httpx.Response) -> bool:
    return response.status_code == 500 and any(
        sentence in response.json()["error"]["message"]
        for sentence in ("does not match the expected", "Unexpected empty grammar stack after accepting piece")
    )


@pytest.mark.parametrize(("rig", "name"), _cases(READ), indirect=["rig"], scope="module")
def test_the_engine_reads_what_we_read(rig: Rig, straight: httpx.Client, name: str) -> None:
    response = straight.post(CHAT_PATH, json=rig.request(name))
    assert response.status_code == 200
    turn = as_turn(response.json()["choices"][0]["message"])
    assert turn == TURNS[name]
    # A raw replay brings the tag that the prompt opens along with the text.
    for text in (rig.texts[name], rig.family.opened + rig.texts[name]):
        ours = read(text, TOOLS)
        assert (
            Turn([(call.name, json.loads(call.arguments)) for call in ours.calls], ours.content, ours.reasoning) == turn
        )


@pytest.mark.parametrize(("rig", "name"), _cases(REFUSED), indirect=["rig"], scope="module")
def test_what_the_engine_refuses_is_repaired(
    rig: Rig, straight: httpx.Client, repaired: httpx.Client, name: str
) -> None:
    assert is_refusal(straight.post(CHAT_PATH, json=rig.request(name)))
    response = repaired.post(CHAT_PATH, json=rig.request(name))
    expected = rig.refused[name]
    if expected.code:
        assert response.status_code == 422
        error = response.json()["error"]
        assert error["code"] == expected.code
        assert error["raw_output"].strip() == (rig.family.opened + rig.texts[name]).strip()
        return
    assert response.status_code == 200
    assert response.headers["x-pegmend"] == f"repaired; evidence=replay; calls={len(expected.turn.calls)}"
    assert as_turn(response.json()["choices"][0]["message"]) == expected.turn


@pytest.mark.parametrize(("rig", "name"), _cases(REFUSED), indirect=["rig"], scope="module")
def test_what_the_engine_refuses_in_a_stream_is_completed(rig: Rig, repaired: httpx.Client, name: str) -> None:
    streamed = accumulate(repaired.post(CHAT_PATH, json={**rig.request(name), "stream": True}).text)
    expected = rig.refused[name]
    if (rig.family.name, name) in UNSENT:
        assert [error["code"] for error in streamed.errors] == ["tool_calls_incomplete"]
        return
    if expected.code:
        assert [error["code"] for error in streamed.errors] == [expected.code]
        return
    assert streamed.errors == []
    assert streamed.is_done
    assert as_turn(streamed.messages[0]) == expected.turn
