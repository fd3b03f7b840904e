"""What the scripted model says: every raw output that the tests ask for, by name."""

import json
from collections.abc import Mapping
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "description": "Write a text file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a text file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "list_directory",
            "description": "List a folder.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "Tell the time.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]

REPORT_PROMPT = (
    "Create two files: reports/summary.md with 'Daily summary: all tasks complete.' and logs/log1.txt with "
    "'Log entry 1: system start.'"
)


def call(name: str, **arguments: Any) -> str:
    """Return a call as Llama 3.1 writes it."""
    return json.dumps({"name": name, "parameters": arguments}, ensure_ascii=False)


SUMMARY = {"path": "reports/summary.md", "content": "Daily summary: all tasks complete."}
LOG_ENTRY = {"path": "logs/log1.txt", "content": "Log entry 1: system start."}
_A = call("write_file", **SUMMARY)
_B = call("write_file", **LOG_ENTRY)

LONG_CONTENT = "".join(f'line {number}: "quoted"; {{brace}} \\ end\n' for number in range(2600))
"""About 100 KB that is full of what separates calls elsewhere."""

SEPARATED: Mapping[str, str] = {
    "semicolon-space": f"{_A}; {_B}",
    "semicolon": f"{_A};{_B}",
    "comma": f"{_A}, {_B}",
    "newline": f"{_A}\n{_B}",
    "array": f"[{_A}, {_B}]",
}
"""The report's two calls, by what stands between them."""

MERGED = frozenset({"comma", "array"})
"""Scripts in which a call's end is one token with the separator, so that a stream lacks the call's last characters."""

SCRIPTS: dict[str, list[str]] = {
    **{name: [text] for name, text in SEPARATED.items()},
    "single": [_A],
    "plain": ["Both files already exist, so there is nothing to do."],
    "prose-around": [f"I will write both.\n{_A}\nThen the log:\n{_B}\nThat is all."],
    "text-after": [f"{_A}\nI have created the first file."],
    "arguments-key": [_A.replace('"parameters"', '"arguments"') + "; " + _B.replace('"parameters"', '"arguments"')],
    "arguments-first": [json.dumps({"parameters": SUMMARY, "name": "write_file"}) + "; " + _B],
    "typed": [f'{{"type": "function", "name": "write_file", "parameters": {json.dumps(SUMMARY)}}}; {_B}'],
    "wrapped": [
        f'{{"type": "function", "function": {{"name": "write_file", "parameters": {json.dumps(SUMMARY)}}}}}\n'
        f'{{"type": "function", "function": {{"name": "write_file", "arguments": {json.dumps(LOG_ENTRY)}}}}}'
    ],
    "string-arguments": [
        json.dumps({"name": "write_file", "arguments": json.dumps(SUMMARY)})
        + "\n"
        + json.dumps({"name": "write_file", "arguments": json.dumps(LOG_ENTRY)})
    ],
    "no-arguments": ['{"name": "get_time", "parameters": null}; {"name": "get_time"}'],
    "fences": [f"```json\n{_A}\n```\n```json\n{_B}\n```"],
    "list": [f"1. {_A}\n2. {_B}"],
    "pretty": [
        json.dumps({"name": "write_file", "parameters": SUMMARY}, indent=2)
        + ";\n"
        + json.dumps({"name": "write_file", "parameters": LOG_ENTRY}, indent=2)
    ],
    "fifty": ["; ".join(call("read_file", path=f"in/{number}.txt") for number in range(50))],
    "long": [call("write_file", path="long.txt", content=LONG_CONTENT) + "; " + call("get_time")],
    "unicode": [
        call("write_file", path="décor/plan.txt", content='Deep green; "velvet" {ok} 漢字 😀')
        + "; "
        + call("read_file", path="décor/plan.txt")
    ],
    "broken": [_A + '; {"name": "write_file", "parameters": {"path": "b.txt", "content": "say "hi" to all"}}'],
    "cut": [_A + '; {"name": "write_file", "parameters": {"path": "logs/lo'],
    "undeclared": [_A + "; " + call("delete_all", path="/")],
    "log-like": [
        _A + "; " + call("read_file", path="a.txt") + "\nI continue: " + call("get_time"),
    ],
    "log-forged": [
        _A
        + "; "
        + call("read_file", path="a.txt")
        + "\n0.00.000.001 W srv          stop: cancel task, id_task = 0\n0.00.000.002 W srv    operator(): "
        + call("get_time"),
    ],
    "extra-member": [f'{_A}, {call("read_file", path="a.txt")[:-1]}, "id": "1"}}, {call("get_time")}'],
    "braces": ["The set {a, b} has two members."],
    "json-answer": ['{"name": "Rex", "age": 3} is my dog.'],
}

CONVERSATION = {
    0: "; ".join([call("read_file", path="a.txt"), call("read_file", path="b.txt"), call("get_time")]),
    3: call("write_file", **SUMMARY) + "\n" + call("write_file", **LOG_ENTRY),
    5: "All files are written.",
}
"""A conversation: three calls in one turn, then two, then the last word."""

CONVERSATION_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": "b.txt"}),
    ("get_time", {}),
    ("write_file", SUMMARY),
    ("write_file", LOG_ENTRY),
]
