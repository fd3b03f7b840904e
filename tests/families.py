"""What the tests of the reader and scripts/fuzz.py share: a writer for each format, random texts, what always holds.

A writer puts calls into a raw output as a model of its family would. What no reader can tell from the text alone, such
as a value that holds the tag which ends it, is named beside the writer.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from hypothesis import strategies as st

from pegmend.errors import TurnError
from pegmend.rawoutput import read
from pegmend.turn import ToolCall, Turn


class Call(NamedTuple):
    """A call that is to be written."""

    name: str
    arguments: dict[str, Any]


Write = Callable[[Sequence[Call]], str]

TOOLS: dict[str, dict[str, Any]] = {
    "read_file": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
        },
    },
    "search": {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "options": {
                "type": "object",
                "properties": {"mode": {"type": "string"}, "depth": {"type": ["integer", "null"]}},
            },
            "extra": {"type": "object"},
            "after": {"type": ["integer", "null"]},
        },
    },
    "time": {"type": "object", "properties": {}},
}

SAMPLE = [
    Call("read_file", {"path": 'C:\\a "b"\n{x}', "limit": 12, "ratio": -0.5, "deep": True}),
    Call(
        "search",
        {
            "query": "it's [1], näh\u2028",
            "tags": ["a", ""],
            "rows": [[1, 2], []],
            "options": {"mode": "m", "depth": None},
            "extra": {"k": [{"j": 1e-7}, "v"]},
            "after": None,
        },
    ),
    Call("time", {}),
]
"""Calls that hold every kind of value."""


# Writers


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(value: Any) -> str:
    """Return a value as families write it that put a string there as it is."""
    return value if isinstance(value, str) else _json(value)


def _object(call: Call, *, name: str = "name", arguments: str = "arguments", ascii_only: bool = False) -> str:
    return json.dumps({name: call.name, arguments: call.arguments}, ensure_ascii=ascii_only)


def _objects(before: str, after: str, separator: str = "", **keys: Any) -> Write:
    """Return the writer of JSON objects, each between two markers."""
    return lambda calls: separator.join(f"{before}{_object(call, **keys)}{after}" for call in calls)


def _listed(before: str, after: str, **keys: Any) -> Write:
    """Return the writer of a JSON array of objects between two markers."""
    return lambda calls: f"{before}[{', '.join(_object(call, **keys) for call in calls)}]{after}"


def _each(template: str, before: str = "", after: str = "") -> Write:
    """Return the writer that fills in NAME, JSON and INDEX for each call."""

    def write(calls: Sequence[Call]) -> str:
        written = ""
        for index, call in enumerate(calls):
            head, _, tail = template.partition("JSON")
            head, tail = (part.replace("NAME", call.name).replace("INDEX", str(index)) for part in (head, tail))
            written += head + _json(call.arguments) + tail
        return before + written + after

    return write


def _elements(call_start: str, parameter: str, call_end: str, before: str = "", after: str = "") -> Write:
    """Return the writer of elements; `parameter` holds KEY and VALUE, `call_start` holds NAME."""
    start, middle, end = re.split("KEY|VALUE", parameter)

    def write(calls: Sequence[Call]) -> str:
        return (
            before
            + "".join(
                call_start.replace("NAME", call.name)
                + "".join(f"{start}{key}{middle}{_bare(value)}{end}" for key, value in call.arguments.items())
                + call_end
                for call in calls
            )
            + after
        )

    return write


def _openai(calls: Sequence[Call]) -> str:
    return _json(
        [
            {"type": "function", "id": f"call_{index}", "function": {"name": name, "arguments": _json(arguments)}}
            for index, (name, arguments) in enumerate(calls)
        ]
    )


def _seed(calls: Sequence[Call]) -> str:
    def parameter(key: str, value: Any) -> str:
        text = _bare(value)
        # A line break at the start would be taken for markup.
        return f"<parameter={key}>" + (f"\n{text}\n" if text.startswith("\n") else text) + "</parameter>\n"

    return "\n".join(
        f"<seed:tool_call>\n<function={name}>\n"
        + "".join(parameter(key, value) for key, value in arguments.items())
        + "</function>\n</seed:tool_call>"
        for name, arguments in calls
    )


def _dsml(section: str, space: str = "") -> Write:
    mark = f"｜DSML｜{space}"

    def parameter(key: str, value: Any) -> str:
        is_string = str(isinstance(value, str)).lower()
        return f'<{mark}parameter name="{key}" string="{is_string}">{_bare(value)}</{mark}parameter>\n'

    def write(calls: Sequence[Call]) -> str:
        return (
            f"<{mark}{section}>\n"
            + "".join(
                f'<{mark}invoke name="{name}">\n'
                + "".join(parameter(key, value) for key, value in arguments.items())
                + f"</{mark}invoke>\n"
                for name, arguments in calls
            )
            + f"</{mark}{section}>"
        )

    return write


_KIMI_TYPES = {str: "string", bool: "boolean", list: "array", dict: "object", type(None): "null"}


def _kimi_k3(calls: Sequence[Call]) -> str:
    def argument(key: str, value: Any) -> str:
        kind = _KIMI_TYPES.get(type(value), "number")
        return f'<|open|>argument key="{key}" type="{kind}"<|sep|>{_bare(value)}<|close|>argument<|sep|>'

    return (
        "<|open|>tools<|sep|>"
        + "".join(
            f'<|open|>call tool="{name}" index="{index}"<|sep|>'
            + "".join(argument(key, value) for key, value in arguments.items())
            + "<|close|>call<|sep|>"
            for index, (name, arguments) in enumerate(calls)
        )
        + "<|close|>tools<|sep|><|close|>message<|sep|>"
    )


def _minimax_m3(calls: Sequence[Call]) -> str:
    mark = "]<]minimax[>["

    def element(key: str, value: Any, schema: Mapping[str, Any]) -> str:
        if isinstance(value, list):
            inner = "".join(element("item", item, schema.get("items", {})) for item in value)
        elif isinstance(value, dict) and "properties" in schema:
            inner = "".join(element(name, member, schema["properties"][name]) for name, member in value.items())
        else:
            inner = _bare(value)
        return f"{mark}<{key}>{inner}{mark}</{key}>"

    return (
        f"{mark}<tool_call>\n"
        + "".join(
            f'{mark}<invoke name="{name}">'
            + "".join(element(key, value, TOOLS[name]["properties"][key]) for key, value in arguments.items())
            + f"{mark}</invoke>\n"
            for name, arguments in calls
        )
        + f"{mark}</tool_call>"
    )


def _gemma(opening: str, quote: str, closing: str) -> Write:
    def notation(value: Any, *, is_outermost: bool = False) -> str:
        if isinstance(value, str):
            return f"{quote}{value}{quote}"
        if isinstance(value, list):
            return "[" + ",".join(map(notation, value)) + "]"
        if isinstance(value, dict):
            keys = {key: key if re.fullmatch(r"[A-Za-z_]\w*", key) else f'<|"|>{key}<|"|>' for key in value}
            return "{" + ",".join(f"{keys[key]}:{notation(member)}" for key, member in value.items()) + "}"
        return _json(value)

    return lambda calls: "".join(f"{opening}call:{name}{notation(arguments)}{closing}" for name, arguments in calls)


def _pythonic(before: str, after: str, *, separator: str = ", ", json_strings: bool = False) -> Write:
    def literal(value: Any) -> str:
        if isinstance(value, str) and json_strings:
            return _json(value)
        if isinstance(value, list):
            return "[" + ", ".join(map(literal, value)) + "]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{literal(key)}: {literal(member)}" for key, member in value.items()) + "}"
        return repr(value)

    def one(call: Call) -> str:
        return f"{call.name}({', '.join(f'{key}={literal(value)}' for key, value in call.arguments.items())})"

    return lambda calls: before + separator.join(map(one, calls)) + after


def _minicpm5_cdata(calls: Sequence[Call]) -> str:
    def parameter(key: str, value: Any) -> str:
        text = f"<![CDATA[{value}]]>" if isinstance(value, str) else _json(value)
        return f'<param name="{key}">{text}</param>\n'

    return "".join(
        f'<function name="{name}">\n'
        + "".join(parameter(key, value) for key, value in arguments.items())
        + "</function>\n"
        for name, arguments in calls
    )


def _llama_builtin(calls: Sequence[Call]) -> str:
    return "".join(_pythonic("<|python_tag|>", "")([call]).replace("(", ".call(", 1) for call in calls)


def _apertus(calls: Sequence[Call]) -> str:
    return f"<|tools_prefix|>{_json([{name: arguments} for name, arguments in calls])}<|tools_suffix|>"


def _cohere(before: str, after: str, *, with_id: bool) -> Write:
    def write(calls: Sequence[Call]) -> str:
        items = [
            ({"tool_call_id": str(index)} if with_id else {}) | {"tool_name": name, "parameters": arguments}
            for index, (name, arguments) in enumerate(calls)
        ]
        return before + json.dumps(items, indent=4, ensure_ascii=False) + after

    return write


@dataclass(frozen=True)
class Writer:
    """How calls are written in one format, and the Family that reads it.

    Where a string holds one of `marks`, its end cannot be told for certain from the text; `key` is what a key of an
    inner object has to look like.
    """

    family: str
    write: Write
    marks: tuple[str, ...] = ()
    key: str = r"[\s\S]*"

    def can_tell(self, calls: Sequence[Call]) -> bool:
        """Whether nothing in the calls looks like a mark of the format."""
        strings = [string for call in calls for string in strings_of(call.arguments)]
        return not any(mark in string for mark in self.marks for string in strings)

    def can_write(self, calls: Sequence[Call]) -> bool:
        """Whether the format has a notation for everything in the calls."""
        return all(re.fullmatch(self.key, key) for call in calls for key in keys_of(call.arguments))


_QWEN = ("</parameter>", "<parameter=", "<function=", "</function>")
_GLM = ("arg_value", "arg_key")
_DSML = ("</｜DSML｜parameter>", "</｜DSML｜ parameter>", "<｜DSML｜parameter", "<｜DSML｜ parameter")
_INVOKE = ("</parameter>", "<parameter name=")
_GEMMA_KEY = r"(?:[^<>]{0,255}[^<>\s])"
_START = "<|start|>assistant"

WRITERS: dict[str, Writer] = {
    # JSON, alone and between markers
    "json": Writer("json", _objects("", "", "; ")),
    "json-ascii": Writer("json", _objects("", "", "\n", arguments="parameters", ascii_only=True)),
    "json-array": Writer("json", _listed("", "")),
    "json-fence": Writer("json", _objects("```json\n", "\n```", "\n")),
    "openai": Writer("json", _openai),
    "hermes": Writer("json", _objects("<tool_call>\n", "\n</tool_call>", "\n")),
    "hunyuan": Writer("json", _listed("<tool_calls>", "</tool_calls>")),
    "nemotron": Writer("json", _listed("<TOOLCALL>", "</TOOLCALL>")),
    "granite3": Writer("json", _listed("<|tool_call|>", "")),
    "granite-20b": Writer("json", _objects("<function_call> ", "", "\n")),
    "longcat": Writer("json", _objects("<longcat_tool_call>", "</longcat_tool_call>", "\n")),
    "llama3": Writer("json", _objects("<|python_tag|>", "<|eom_id|>", "; ", arguments="parameters")),
    "mistral-v3": Writer("json", _listed("[TOOL_CALLS]", "")),
    "firefunction": Writer("json", _listed("functools", "")),
    "internlm": Writer("json", _objects("<|action_start|><|plugin|>", "<|action_end|>", arguments="parameters")),
    "gigachat": Writer("json", _objects("<|message_sep|>function call<|role_sep|>", "", "\n")),
    # elements
    "functionary-v3.1": Writer("functionary_v31", _each("<function=NAME>JSON</function>")),
    "qwen3-coder": Writer(
        "qwen_xml",
        _elements(
            "<tool_call>\n<function=NAME>\n",
            "<parameter=KEY>\nVALUE\n</parameter>\n",
            "</function>\n</tool_call>\n",
        ),
        _QWEN,
    ),
    "qwen3-coder-bare": Writer(
        "qwen_xml", _elements("<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>"), _QWEN
    ),
    "seed-oss": Writer("qwen_xml", _seed, _QWEN),
    "glm": Writer(
        "arg_keys",
        _elements(
            "<tool_call>NAME\n",
            "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
            "</tool_call>\n",
        ),
        _GLM,
    ),
    "glm-tight": Writer(
        "arg_keys",
        _elements("<tool_call>NAME", "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>", "</tool_call>"),
        _GLM,
    ),
    "hy3": Writer(
        "arg_keys",
        _elements(
            "<tool_call:opensource>NAME<tool_sep:opensource>\n",
            "<arg_key:opensource>KEY</arg_key:opensource>\n<arg_value:opensource>VALUE</arg_value:opensource>\n",
            "</tool_call:opensource>\n",
            "<tool_calls:opensource>\n",
            "</tool_calls:opensource>",
        ),
        _GLM,
    ),
    "k2-horizon": Writer(
        "arg_keys",
        _elements(
            "<ifm|tool_call>NAME\n",
            "<ifm|arg_key>KEY</ifm|arg_key>\n<ifm|arg_value>VALUE</ifm|arg_value>\n",
            "</ifm|tool_call>\n",
            "<ifm|tool_calls>\n",
            "</ifm|tool_calls>",
        ),
        _GLM,
    ),
    "k2-horizon-json": Writer(
        "arg_keys",
        lambda calls: (
            "<ifm|tool_calls>\n" + _objects("<ifm|tool_call>", "</ifm|tool_call>\n")(calls) + "</ifm|tool_calls>"
        ),
    ),
    "dsml-v3.2": Writer("deepseek_dsml", _dsml("function_calls"), _DSML),
    "dsml-v4": Writer("deepseek_dsml", _dsml("tool_calls"), _DSML),
    "dsml-v4.1": Writer("deepseek_dsml", _dsml("calls", " "), _DSML),
    "step3": Writer(
        "step3",
        _elements(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">',
            '<steptml:parameter name="KEY">VALUE</steptml:parameter>',
            "</steptml:invoke><｜tool_call_end｜>",
            "<｜tool_calls_begin｜>\n",
            "\n<｜tool_calls_end｜>",
        ),
        ("</steptml:parameter>", "<steptml:parameter name="),
    ),
    "minimax-m2": Writer(
        "minimax_m2",
        _elements(
            '<invoke name="NAME">\n',
            '<parameter name="KEY">VALUE</parameter>\n',
            "</invoke>\n",
            "<minimax:tool_call>\n",
            "</minimax:tool_call>",
        ),
        _INVOKE,
    ),
    "minimax-m2-bare": Writer(
        "minimax_m2",
        _elements('<invoke name="NAME">\n', '<parameter name="KEY">VALUE</parameter>\n', "</invoke>\n"),
        _INVOKE,
    ),
    "minimax-m3": Writer("minimax_m3", _minimax_m3, ("]<]minimax[>[",)),
    "dots": Writer(
        "dots",
        lambda calls: "".join(
            _elements(
                '<invoke name="NAME">\n',
                '<parameter name="KEY">VALUE</parameter>\n',
                "</invoke>\n",
                "<dots_function_call>\n",
                "</dots_function_call>",
            )([call])
            for call in calls
        ),
        _INVOKE,
    ),
    "dots-json": Writer("dots", _objects("<dots_function_call>", "</dots_function_call>", "\n")),
    "minicpm5": Writer(
        "minicpm5",
        _elements('<function name="NAME">', '<param name="KEY">VALUE</param>', "</function>"),
        ("</param>", "<param name=", "<![CDATA["),
    ),
    "minicpm5-cdata": Writer(
        "minicpm5", _minicpm5_cdata, ("]]>", "</param>", "<param name=", "</function>", "<![CDATA[")
    ),
    "kimi-k3": Writer("kimi_k3", _kimi_k3, ("<|close|>argument<|sep|>", "<|open|>argument key=")),
    # JSON behind a name
    "deepseek-v3": Writer(
        "deepseek",
        _each(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nJSON\n```<｜tool▁call▁end｜>\n",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
        ),
    ),
    "deepseek-v3.1": Writer(
        "deepseek",
        _each(
            "<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>JSON<｜tool▁call▁end｜>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
        ),
    ),
    "kimi-k2": Writer(
        "kimi_k2",
        _each(
            "<|tool_call_begin|>functions.NAME:INDEX<|tool_call_argument_begin|>JSON<|tool_call_end|>",
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
        ),
    ),
    "mistral-v11": Writer("mistral", _each("[TOOL_CALLS]NAME[ARGS]JSON")),
    "mistral-v13": Writer("mistral", _each("[TOOL_CALLS]NAME[CALL_ID]abcdefghINDEX[ARGS]JSON")),
    "mistral-unmarked": Writer("bare_names", _each("NAMEJSON\n")),
    "react": Writer("react", _each("Action: NAME\nAction Input: JSON\n")),
    "functionary-v3.2": Writer("functionary_v32", _each(">>>NAME\nJSON")),
    "cohere": Writer("cohere", _cohere("<|START_ACTION|>", "<|END_ACTION|>", with_id=True)),
    "command-r-plus": Writer("cohere", _cohere("Action: ```json\n", "\n```", with_id=False)),
    "apertus": Writer("apertus", _apertus),
    "solar": Writer(
        "solar_open",
        _each(
            "<|tool_call:begin|>idINDEX<|tool_call:name|>NAME<|tool_call:args|>JSON<|tool_call:end|>",
            "<|tool_calls|>",
            "<|calls|>",
        ),
    ),
    "plamo3": Writer(
        "plamo3",
        _each(
            "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>NAME<|plamo:end_tool_name:plamo|>"
            "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>JSON"
            "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
            "<|plamo:begin_tool_requests:plamo|>",
            "<|plamo:end_tool_requests:plamo|>",
        ),
    ),
    "inkling": Writer(
        "inkling", _objects("<|message_model|><|content_invoke_tool_json|>", "<|end_message|>", arguments="args")
    ),
    "gpt-oss": Writer(
        "messages",
        _each(f"{_START} to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>JSON<|call|>"),
    ),
    "gpt-oss-late": Writer(
        "messages",
        _each(f"{_START}<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>"),
    ),
    "muse": Writer(
        "messages",
        _elements(
            f'{_START} to=NAME<|message|><atem:function_calls>\n<atem:invoke name="NAME">\n',
            '<atem:parameter name="KEY">VALUE</atem:parameter>\n',
            "</atem:invoke>\n</atem:function_calls><|eom|>",
        ),
        ("</atem:parameter>", "<atem:parameter name="),
    ),
    "beam": Writer(
        "messages",
        _elements(
            f"{_START} to=NAME<|channel|>analysis <|constrain|>xml<|message|>",
            '<rfl:parameter name="KEY">\nVALUE\n</rfl:parameter>\n',
            "<|call|>",
        ),
        ("</rfl:parameter>", "<rfl:parameter name="),
    ),
    # notations of their own
    "gemma4": Writer("gemma", _gemma("<|tool_call>", '<|"|>', "<tool_call|>"), ('<|"|>',), _GEMMA_KEY),
    "functiongemma": Writer(
        "gemma",
        _gemma("<start_function_call>", "<escape>", "<end_function_call>"),
        ("<escape>",),
        _GEMMA_KEY,
    ),
    "pythonic": Writer("pythonic", _pythonic("[", "]")),
    "llama4": Writer("pythonic_marked", _pythonic("<|python_start|>[", "]<|python_end|>")),
    "lfm2": Writer("pythonic_marked", _pythonic("<|tool_call_start|>[", "]<|tool_call_end|>", json_strings=True)),
    "olmo3": Writer("pythonic_marked", _pythonic("<function_calls>\n", "\n</function_calls>", separator="\n")),
    "llama3-builtin": Writer("llama_builtin", _llama_builtin),
}
"""Every format, under a name of its own."""

MAY_LACK_THE_LAST_TAG = {"glm", "glm-tight", "hy3", "k2-horizon", "beam", "qwen3-coder", "qwen3-coder-bare", "seed-oss"}
"""Formats in which the closing tag of the last value may be missing, unless the engine cut the text: there a text that
ends right behind the end of a call in a value holds that call, with less in the value."""

WITHOUT_CALLS = {"ignored", "reasoning", "end_of_reasoning", "cohere_response", "kimi_k3_response", "unfinished"}
"""Families that read something else than calls."""

THOUGHT_TAGS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<think:opensource>", "</think:opensource>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
]
SAMPLES = {name: writer.write(SAMPLE) for name, writer in WRITERS.items()}
"""The SAMPLE in every format."""


_MARKER = re.compile(r"\]<\]minimax\[>\[|<[^<>\n]{1,90}>|\[/?[A-Z][A-Z_ ]+\]|```(?:json)?|functools|>>>\w+|Action:")


def markers_in(text: str) -> set[str]:
    """Return the markers that stand in a text."""
    return set(_MARKER.findall(text))


MARKERS = sorted(
    {marker for text in SAMPLES.values() for marker in markers_in(text)}
    | {tag for pair in THOUGHT_TAGS for tag in pair}
    | {"<bos>", "<eos>", "<answer>", "</answer>", "<turn|>", "</s>", "<|end|>", "<|eom|>", "<|start|>", "<|return|>"}
    | {"<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"}
    | {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "[BEGIN FINAL RESPONSE]", ">>>all\n", "[/TOOL_CALLS]"}
    | {"<|content_thinking|>", "<|content_text|>", "<|tool_response>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}
    | {"<｜tool▁outputs▁begin｜>", "<ifm|arg_type>string</ifm|arg_type>", "<|end_of_msg|>", "<co: 1>", "</co: 1>"}
)
"""What families write around calls and the parts of calls."""

PIECES = [
    *("{", "}", "[", "]", "(", ")", '"', "'", '"""', "'''", "`", "\\", ";", ",", ":", "=", "<", ">", "|", "｜", "▁"),
    *(" ", "\n", "\r\n", "\t", "\u2028", "\x00", "\x1f", "\u00a0", "\ufeff", "é", "世", "😀"),
    *("\\n", '\\"', "\\u0041", "\\u00e9", "\\x41", "\\N", "\\U0001F600", "\\777", "\\ud800", "\\ud83d\\ude00"),
    *("0", "-1", "1.5", "1e9", "1e999", "-", "01", "NaN", "null", "true", "None", "True", "x", "word", "I will look."),
    *("read_file", "search", "time", "unknown", "path", "query", "tags", "options", "mode", "extra", "limit"),
    *('"name"', '"arguments"', '"parameters"', '"function"', '"type"', '"id"', '"args"', '"tool_name"'),
    *('{"name": "time", "arguments": {}}', '{"name": "read_file", "parameters": {"path": "', '"}}', "time()"),
    *('"path": "a"', 'path="a"', "read_file(path=", "[search(", "{}", "[]", '{"time": {}}', "call:time{}", "to=time"),
    *("function", "functions.", "assistant", "analysis", "commentary", "final", "json", "- ", "1. ", "item", "/"),
]
"""Parts of calls, and other characters that readers trip over."""


# Random calls and texts


def _one_of(texts: Sequence[str]) -> st.SearchStrategy[str]:
    """Return the strategy for one of many texts; st.sampled_from would print them all."""
    return st.integers(0, len(texts) - 1).map(lambda index: texts[index])


_FRAGMENTS = _one_of(MARKERS) | _one_of(PIECES) | st.text(max_size=4)
_SAMPLE_TEXTS = _one_of(list(SAMPLES.values()))
SOUP = st.lists(_FRAGMENTS, max_size=14).map("".join)
"""Markers and parts of calls in any order."""

STRINGS = st.text(max_size=12) | st.lists(_FRAGMENTS, max_size=5).map("".join) | _SAMPLE_TEXTS
_INTEGERS = st.integers(-(2**63), 2**64 - 1)
_NUMBERS = _INTEGERS | st.floats(allow_nan=False, allow_infinity=False)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | _NUMBERS | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=6,
)


def _values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return the values that a schema of TOOLS allows."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if kinds == ["array"]:
        return st.lists(_values(schema["items"]), max_size=3)
    if kinds == ["object"]:
        return _members(schema) if "properties" in schema else st.dictionaries(STRINGS, _ANYTHING, max_size=3)
    by_kind = {
        "string": STRINGS,
        "integer": _INTEGERS,
        "number": _NUMBERS,
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return st.one_of([by_kind[kind] for kind in kinds])


def _members(schema: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={key: _values(inner) for key, inner in schema["properties"].items()})


def _calls_to(name: str) -> st.SearchStrategy[Call]:
    return st.builds(Call, st.just(name), _members(TOOLS[name]))


CALLS = st.lists(st.sampled_from(sorted(TOOLS)).flatmap(_calls_to), min_size=1, max_size=3)
PROSE = st.sampled_from(
    ["", "I will look.", "Zuerst das – dann: dies…", "1 < 2 & so on\n\nnext", "It's “fine”, 世界.", "a [b] (`c`) d"]
)


@dataclass(frozen=True)
class Document:
    """A well-formed raw output, and what stands in it."""

    text: str
    calls: tuple[Call, ...]
    content: str = ""
    reasoning: str = ""
    formats: tuple[str, ...] = ()


@st.composite
def documents(draw: st.DrawFn, formats: Sequence[str] = tuple(WRITERS)) -> Document:
    """Draw a turn in one format: thoughts, prose, calls."""
    name = draw(st.sampled_from(formats))
    writer = WRITERS[name]
    calls = draw(CALLS.filter(writer.can_write).filter(writer.can_tell))
    text = writer.write(calls)
    prose = draw(PROSE)
    if prose:
        text = f"{prose}\n{text}"
    thought = draw(PROSE)
    if thought:
        opening, closing = draw(st.sampled_from(THOUGHT_TAGS))
        text = f"{opening}{thought}{closing}\n{text}"
    return Document(text, tuple(calls), prose, thought, (name,))


@st.composite
def mixtures(draw: st.DrawFn) -> Document:
    """Draw a turn in which one format follows the other."""
    # Behind names without any marker nothing else may follow.
    first = draw(documents(sorted(WRITERS.keys() - {"mistral-unmarked"})))
    second = draw(documents().filter(lambda one: not one.reasoning))
    text = f"{first.text}\n{second.text}"
    return Document(text, first.calls + second.calls, formats=first.formats + second.formats)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """Draw a well-formed text in which parts were deleted, doubled, moved, put in or cut off.

    No half of a surrogate pair comes about, which has a test of its own.
    """
    text = draw(_SAMPLE_TEXTS | documents().map(lambda one: one.text))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(["delete", "double", "insert", "replace", "move", "cut", "splice"]))
        if kind == "delete":
            text = text[:start] + text[end:]
        elif kind == "double":
            text = text[:end] + text[start:]
        elif kind == "insert":
            text = text[:start] + draw(_FRAGMENTS) + text[start:]
        elif kind == "replace":
            text = text[:start] + draw(_FRAGMENTS) + text[end:]
        elif kind == "move":
            rest = text[:start] + text[end:]
            place = draw(st.integers(0, len(rest)))
            text = rest[:place] + text[start:end] + rest[place:]
        elif kind == "cut":
            text = text[:start]
        else:
            other = draw(_SAMPLE_TEXTS)
            text = text[:start] + other[draw(st.integers(0, len(other))) :]
    return text


# What always holds

_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[\\'\"/abfnrtv\n])|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-7]{1,3}))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}


def strings_of(value: Any) -> Iterator[str]:
    """Yield every string in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield key
            yield from strings_of(member)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)


def keys_of(value: Any) -> Iterator[str]:
    """Yield every key in a value."""
    if isinstance(value, Mapping):
        yield from value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from keys_of(inner)


def check_turn(raw: str, turn: Turn) -> None:
    """Assert what holds for any turn: declared names, arguments that are objects, and nothing that is not in `raw`."""
    for text in (turn.content, turn.reasoning, *(part for call in turn.calls for part in (call.arguments, call.id))):
        text.encode()
    once = _unescaped(raw)
    spellings = (raw, once, _unescaped(once))
    for call in turn.calls:
        assert call.name in TOOLS, f"{call.name!r} is not declared"
        arguments = orjson.loads(call.arguments)
        assert isinstance(arguments, dict), f"{call.arguments!r} is no object"
        for string in (call.name, *strings_of(arguments)):
            assert any(string in spelling for spelling in spellings), f"{string!r} does not stand in the text"


def read_safely(raw: str, *, truncated: bool = False) -> Turn | None:
    """Read any text and assert what holds for any turn; None for a documented error."""
    try:
        turn = read(raw, TOOLS, truncated=truncated)
    except TurnError:
        return None
    check_turn(raw, turn)
    return turn


def check_beginning(text: str, end: int, *, truncated: bool) -> None:
    """Assert that the text up to `end` holds no call that the whole text does not."""
    whole = read(text, TOOLS).calls
    begun = read_safely(text[:end], truncated=truncated)
    if begun is not None:
        assert begun.calls == whole[: len(begun.calls)], f"{begun.calls} is no beginning of {whole}"


def check_round_trip(document: Document) -> None:
    """Assert that the calls of a document come back, and its words and thoughts if it is of one format."""
    turn = read(document.text, TOOLS)
    check_turn(document.text, turn)
    assert_same(turn.calls, document.calls)
    if len(document.formats) == 1:
        _assert_words(turn, document.content, document.reasoning)


def check_thoughts(opening: str, thought: str, closing: str, answer: str) -> None:
    """Assert that nothing in thoughts between tags is a call, whatever stands in them."""
    if closing[:-1] in thought or (closing == "</thinking>" and "</think>" in thought):
        return
    turn = read_safely(f"{opening}{thought}{closing}{answer}")
    if turn is not None:
        assert_same(turn.calls, ())
        _assert_words(turn, answer, thought.strip())


def assert_same(calls: Sequence[ToolCall], expected: Sequence[Call]) -> None:
    """Assert that calls are the expected ones: names, keys in their order, values and their types."""
    found = [(call.name, _exact(json.loads(call.arguments))) for call in calls]
    written = [(name, _exact(arguments)) for name, arguments in expected]
    assert found == written, f"{found} is read, {written} was written"


def _assert_words(turn: Turn, content: str, reasoning: str) -> None:
    found, written = (turn.content, turn.reasoning), (content, reasoning)
    assert found == written, f"{found} is read, {written} was written"


def _exact(value: Any) -> str:
    """Return a form in which 1, 1.0 and true differ."""
    return json.dumps(value)


def _unescaped(text: str) -> str:
    """Return a text in which the escapes of JSON and Python are resolved."""
    resolved = _ESCAPE.sub(_resolved, text)
    return resolved.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _resolved(escape: re.Match[str]) -> str:
    if simple := escape["simple"]:
        return _SIMPLE.get(simple, simple)
    if octal := escape["octal"]:
        return chr(int(octal, 8))
    code = int(escape["x"] or escape["u"] or escape["U"], 16)
    return chr(code) if code <= 0x10FFFF else escape.group()
