"""Chat templates of our own, one in the format of each family, and the turns that they print.

The engine derives its parser from the template: it compares what the template prints for messages that it makes up, or
knows a family by strings in the template's text. So each template is written in its family's format, and what a model
of the family says is what the template prints for such a turn.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jinja2

Call = tuple[str, dict[str, Any]]

_TEMPLATE = """\
{#- A chat template in the manner of @NAME@. @SIGNS@ -#}
{%- macro text(value) -%}{{- value if value is string else value | tojson -}}{%- endmacro -%}
{%- macro say_calls(calls) -%}@CALLS@{%- endmacro -%}
{%- macro say_turn(thoughts, words, calls) -%}@TURN@{%- endmacro -%}
{%- if tools -%}
    {{- @START@ + "system" + @MIDDLE@ + "These functions are yours:" -}}
    {%- for tool in tools -%}{{- "\\n" -}}{{- tool | tojson -}}{%- endfor -%}
    {{- @END@ -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if message.role == "assistant" -%}
        {{- @ASSISTANT@ -}}
        {{- say_turn(message.reasoning_content, message.content, message.tool_calls) -}}
    {%- else -%}
        {{- @START@ + message.role + @MIDDLE@ -}}{{- message.content -}}
    {%- endif -%}
    {{- @END@ -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- @ASSISTANT@ + @OPENED@ -}}{%- endif -%}
"""
_TURN = """
    {%- if thoughts or @OPENED@ -%}{{- @BEFORE_THOUGHTS@ + (thoughts or "") + @AFTER_THOUGHTS@ -}}{%- endif -%}
    {{- words or "" -}}
    {%- if words and calls -%}{{- "\\n" -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}{%- endif -%}
"""


@dataclass(frozen=True)
class FormatFamily:
    """A format, by how a template of it prints things.

    `calls` is Jinja that prints the calls, `turn` Jinja that prints a whole turn. The rest are strings: what stands
    around a role and behind a message, in front of the assistant's turn, around the thoughts, and the tag that the
    prompt opens. `signs` is in a comment of the template, where the engine looks for it. `marker` is a token at whose
    sight the engine forces the rest of the turn into its grammar; where a model writes it in other tokens, the engine
    lets it say what it likes.
    """

    name: str
    calls: str
    start: str = "<|im_start|>"
    middle: str = "\n"
    end: str = "<|im_end|>\n"
    assistant: str | None = None
    before_thoughts: str = "<think>\n"
    after_thoughts: str = "\n</think>\n\n"
    opened: str = ""
    turn: str = _TURN
    signs: str = ""
    marker: str = ""

    @cached_property
    def template(self) -> str:
        """The chat template."""
        text = _TEMPLATE.replace("@TURN@", self.turn)
        for part, jinja in {"NAME": self.name, "SIGNS": self.signs, "CALLS": self.calls}.items():
            text = text.replace(f"@{part}@", jinja)
        for part, string in {
            "BEFORE_THOUGHTS": self.before_thoughts,
            "AFTER_THOUGHTS": self.after_thoughts,
            "START": self.start,
            "MIDDLE": self.middle,
            "END": self.end,
            "ASSISTANT": self._header,
            "OPENED": self.opened,
        }.items():
            text = text.replace(f"@{part}@", _quoted(string))
        return text

    @property
    def prompt(self) -> str:
        """What a prompt ends with."""
        return self._header + self.opened or self.end

    @property
    def _header(self) -> str:
        return f"{self.start}assistant{self.middle}" if self.assistant is None else self.assistant

    def say(self, calls: Sequence[Call], words: str = "", thoughts: str = "") -> str:
        """Return what a model says that means this."""
        environment = jinja2.Environment(autoescape=False)
        environment.filters["tojson"] = _quoted
        module: Any = environment.from_string(self.template).module
        functions = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
        return str(module.say_turn(thoughts, words, functions)).removeprefix(self.opened)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _each(call: str, before: str = "", between: str = "", after: str = "") -> str:
    """Return Jinja that prints `calls`; the Jinja `call` prints one by its `name` and `arguments`."""
    return (
        f"{{{{- {_quoted(before)} -}}}}{{%- for call in calls -%}}"
        "{%- set name = call.function.name -%}{%- set arguments = call.function.arguments -%}"
        f"{call}{{%- if not loop.last -%}}{{{{- {_quoted(between)} -}}}}{{%- endif -%}}"
        f"{{%- endfor -%}}{{{{- {_quoted(after)} -}}}}"
    )


def _json(before: str, after: str = "''") -> str:
    """Return Jinja that prints the arguments as JSON between two expressions."""
    return f"{{{{- {before} -}}}}{{{{- arguments | tojson -}}}}{{{{- {after} -}}}}"


def _object(before: str = "", after: str = "", *, name: str = "name", arguments: str = "arguments") -> str:
    """Return Jinja that prints a call as a JSON object with these keys, between two strings."""
    return _json(f"""{_quoted(before + '{"' + name + '": "')} + name + '", "{arguments}": '""", _quoted("}" + after))


def _elements(before: str, element: str, after: str) -> str:
    """Return Jinja that prints the arguments, each by an expression of `key` and `value`, between two expressions."""
    elements = f"{{%- for key, value in arguments.items() -%}}{{{{- {element} -}}}}{{%- endfor -%}}"
    return f"{{{{- {before} -}}}}{elements}{{{{- {after} -}}}}"


def _qwen(end: str, before: str = "") -> str:
    """Return Jinja that prints a call as Qwen3-Coder and Seed-OSS do; `end` is what stands around a value."""
    value = rf"'<parameter=' + key + '>{end}' + text(value) + '{end}</parameter>\n'"
    return _elements(
        rf"'<{before}tool_call>\n<function=' + name + '>\n'", value, rf"'</function>\n</{before}tool_call>'"
    )


def _arg_keys(open_call: str, break_: str, close_call: str, *, prefix: str = "") -> str:
    """Return Jinja that prints a call as GLM does."""
    key = f"'<{prefix}arg_key>' + key + '</{prefix}arg_key>{break_}"
    value = f"<{prefix}arg_value>' + text(value) + '</{prefix}arg_value>{break_}'"
    return _elements(open_call, key + value, close_call)


def _dsml(section: str) -> str:
    """Return Jinja that prints calls as DeepSeek V3.2 does."""
    kind = """' + ('true' if value is string else 'false') + '"""
    call = _elements(
        r"""'<｜DSML｜invoke name="' + name + '">\n'""",
        rf"""'<｜DSML｜parameter name="' + key + '" string="{kind}">' + text(value) + '</｜DSML｜parameter>\n'""",
        r"'</｜DSML｜invoke>\n'",
    )
    return _each(call, f"<｜DSML｜{section}>\n", "", f"</｜DSML｜{section}>")


def _invoke(break_: str, prefix: str = "") -> str:
    """Return Jinja that prints a call as MiniMax M2 does."""
    return _elements(
        f"""'<{prefix}invoke name="' + name + '">{break_}'""",
        f"""'<{prefix}parameter name="' + key + '">' + text(value) + '</{prefix}parameter>{break_}'""",
        f"'</{prefix}invoke>{break_}'",
    )


def _gemma(quote: str) -> str:
    """Return the Jinja macro `value_of`, which prints a value in Gemma's notation."""
    comma = "{%- if not loop.last -%}{{- ',' -}}{%- endif -%}{%- endfor -%}"
    return (
        "{%- macro value_of(value) -%}{%- if value is mapping -%}"
        "{{- '{' -}}{%- for key, inner in value.items() -%}{{- key + ':' -}}{{- value_of(inner) -}}"
        f"{comma}{{{{- '}}' -}}}}{{%- elif value is string -%}}{{{{- '{quote}' + value + '{quote}' -}}}}"
        f"{{%- elif value is iterable -%}}{{{{- '[' -}}}}{{%- for inner in value -%}}{{{{- value_of(inner) -}}}}{comma}"
        "{{- ']' -}}{%- else -%}{{- value | tojson -}}{%- endif -%}{%- endmacro -%}"
    )


def _minimax_m3() -> str:
    """Return Jinja that prints calls as MiniMax M3 does."""
    element = "{{{{- ']<]minimax[>[<{0}>' -}}}}{{{{- value_of(inner) -}}}}{{{{- ']<]minimax[>[</{0}>' -}}}}"
    members, items = element.format("' + key + '"), element.format("item")
    call = r"""{{- ']<]minimax[>[<invoke name="' + name + '">' -}}{{- value_of(arguments) -}}"""
    return (
        "{%- macro value_of(value) -%}{%- if value is mapping -%}"
        f"{{%- for key, inner in value.items() -%}}{members}{{%- endfor -%}}"
        "{%- elif value is string or value is not iterable -%}{{- text(value) -}}"
        f"{{%- else -%}}{{%- for inner in value -%}}{items}{{%- endfor -%}}{{%- endif -%}}{{%- endmacro -%}}"
    ) + _each(
        call + r"{{- ']<]minimax[>[</invoke>\n' -}}", "]<]minimax[>[<tool_call>\n", "", "]<]minimax[>[</tool_call>"
    )


_PYTHON_ARGUMENTS = (
    "{%- for key, value in arguments.items() -%}{{- key + '=' -}}{{- value | tojson -}}"
    "{%- if not loop.last -%}{{- ', ' -}}{%- endif -%}{%- endfor -%}"
)
_LFM2 = _each(
    "{{- name + '(' -}}" + _PYTHON_ARGUMENTS + "{{- ')' -}}", "<|tool_call_start|>[", ", ", "]<|tool_call_end|>"
)
_COHERE = _each(
    _json(
        """'    {"tool_call_id": "' + (loop.index0 | string) + '", "tool_name": "' + name + '", "parameters": '""",
        "'}'",
    ),
    "<|START_ACTION|>[\n",
    ",\n",
    "\n]<|END_ACTION|>",
)
_MISTRAL = _each(_json("'[TOOL_CALLS]' + name + '[ARGS]'"))
_MISTRAL_ROLES = {"start": "[", "middle": "]", "end": "</s>"}
_MISTRAL_THOUGHTS = {"before_thoughts": "[THINK]", "after_thoughts": "[/THINK]"}
_DEEPSEEK_ROLES = {"start": "<｜", "middle": "｜>", "end": "<｜end▁of▁sentence｜>"}
_COHERE_ROLES = {"start": "<|START_OF_TURN_TOKEN|><|", "middle": "|>", "end": "<|END_OF_TURN_TOKEN|>"}
_COHERE_TURN = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
_SHORT_THOUGHTS = {"before_thoughts": "<think>", "after_thoughts": "</think>"}

_ALL = [
    FormatFamily("hermes", _each(_object("<tool_call>\n", "\n</tool_call>"), between="\n")),
    FormatFamily("qwen3-coder", _each(_qwen(r"\n"), between="\n")),
    FormatFamily("qwen3.5", _each(_qwen(r"\n"), between="\n"), opened="<think>\n"),
    FormatFamily(
        "seed-oss",
        _each(_qwen("", "seed:"), between="\n"),
        before_thoughts="<seed:think>",
        after_thoughts="</seed:think>",
    ),
    FormatFamily(
        "glm",
        _each(_arg_keys(r"'<tool_call>' + name + '\n'", r"\n", "'</tool_call>'"), between="\n"),
        marker="<tool_call>",
    ),
    FormatFamily(
        "glm-compact",
        _each(_arg_keys("'<tool_call>' + name", "", "'</tool_call>'")),
        opened="<think>",
        **_SHORT_THOUGHTS,
        marker="<tool_call>",
    ),
    FormatFamily(
        "hunyuan-hy3",
        _each(
            _arg_keys(r"'<tool_call>' + name + '<tool_sep>\n'", r"\n", r"'</tool_call>\n'"),
            "<tool_calls>\n",
            "",
            "</tool_calls>",
        ),
    ),
    FormatFamily(
        "k2-horizon",
        _each(
            _arg_keys("'<ifm|tool_call>' + name", "", r"'</ifm|tool_call>\n'", prefix="ifm|"),
            "<ifm|tool_calls>",
            "",
            "</ifm|tool_calls>",
        ),
        before_thoughts="<ifm|think>",
        after_thoughts="</ifm|think>",
        marker="<ifm|tool_calls>",
    ),
    FormatFamily(
        "mistral-array",
        _each(
            _json("""'{"name": "' + name + '", "arguments": '""", """', "id": "' + (call.id or 'abcdefghi') + '"}'"""),
            "[TOOL_CALLS] [",
            ", ",
            "]",
        ),
        assistant="[/INST]",
        **_MISTRAL_ROLES,
    ),
    FormatFamily(
        "mistral-v11", _MISTRAL, assistant="[/INST]", **_MISTRAL_ROLES, **_MISTRAL_THOUGHTS, marker="[TOOL_CALLS]"
    ),
    FormatFamily("ministral", _MISTRAL, assistant="", **_MISTRAL_ROLES, **_MISTRAL_THOUGHTS, signs="[SYSTEM_PROMPT]"),
    FormatFamily(
        "deepseek-r1",
        _each(
            _json(
                r"'<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + name + '\n```json\n'", r"'\n```<｜tool▁call▁end｜>'"
            ),
            "<｜tool▁calls▁begin｜>",
            "\n",
            "<｜tool▁calls▁end｜>",
        ),
        **_DEEPSEEK_ROLES,
        marker="<｜tool▁calls▁begin｜>",
    ),
    FormatFamily(
        "deepseek-v3.1",
        _each(
            _json("'<｜tool▁call▁begin｜>' + name + '<｜tool▁sep｜>'", "'<｜tool▁call▁end｜>'"),
            "<｜tool▁calls▁begin｜>",
            "",
            "<｜tool▁calls▁end｜>",
        ),
        opened="<think>",
        **_DEEPSEEK_ROLES,
        **_SHORT_THOUGHTS,
        marker="<｜tool▁calls▁begin｜>",
    ),
    FormatFamily(
        "deepseek-v3.2",
        _dsml("function_calls"),
        assistant="<｜Assistant｜>",
        signs="dsml_token",
        **_DEEPSEEK_ROLES,
        **_SHORT_THOUGHTS,
    ),
    FormatFamily(
        "deepseek-v4",
        _dsml("tool_calls"),
        assistant="<｜Assistant｜>",
        signs="dsml_token",
        **_DEEPSEEK_ROLES,
        **_SHORT_THOUGHTS,
    ),
    FormatFamily(
        "kimi-k2",
        _each(
            _json(
                "'<|tool_call_begin|>functions.' + name + ':' + (loop.index0 | string)"
                " + '<|tool_call_argument_begin|>'",
                "'<|tool_call_end|>'",
            ),
            "<|tool_calls_section_begin|>",
            "",
            "<|tool_calls_section_end|>",
        ),
        start="<|im_user|>",
        middle="<|im_middle|>",
        end="<|im_end|>",
        assistant="<|im_assistant|>assistant<|im_middle|>",
        **_SHORT_THOUGHTS,
    ),
    FormatFamily(
        "minimax-m1", _each(_object(after="\n"), "<tool_calls>\n", "", "</tool_calls>"), end="<end_of_sentence>\n"
    ),
    FormatFamily(
        "minimax-m2",
        _each(_invoke(r"\n"), "<minimax:tool_call>\n", "", "</minimax:tool_call>"),
        start="]~b]",
        end="[e~[\n",
        assistant="]~b]ai\n",
        opened="<think>\n",
    ),
    FormatFamily(
        "minimax-m3",
        _minimax_m3(),
        start="]~b]",
        end="[e~[\n",
        assistant="]~b]ai\n",
        before_thoughts="<mm:think>",
        after_thoughts="</mm:think>",
        signs="<tool_call> <invoke name=",
    ),
    FormatFamily(
        "dots", _each(_invoke(""), "<dots_function_call>", "", "</dots_function_call>"), marker="<dots_function_call>"
    ),
    FormatFamily(
        "step3",
        _each(
            "{{- '<｜tool_call_begin｜>function<｜tool_sep｜>' -}}"
            + _invoke("", "steptml:")
            + "{{- '<｜tool_call_end｜>' -}}",
            "<｜tool_calls_begin｜>",
            "",
            "<｜tool_calls_end｜>",
        ),
        marker="<｜tool_calls_begin｜>",
    ),
    FormatFamily("lfm2", _LFM2, signs="<|tool_list_start|> <|tool_list_end|>", marker="<|tool_call_start|>"),
    FormatFamily("lfm2.5", _LFM2, signs="List of tools: [", marker="<|tool_call_start|>"),
    FormatFamily(
        "gemma4",
        _gemma('<|"|>') + _each("{{- '<|tool_call>call:' + name -}}{{- value_of(arguments) -}}{{- '<tool_call|>' -}}"),
        start="<|turn>",
        end="<turn|>\n",
        assistant="<|turn>model\n",
        before_thoughts="<|channel>thought\n",
        after_thoughts="<channel|>",
    ),
    FormatFamily(
        "functiongemma",
        _gemma("<escape>")
        + _each("{{- '<start_function_call>call:' + name -}}{{- value_of(arguments) -}}{{- '<end_function_call>' -}}"),
    ),
    FormatFamily(
        "gpt-oss",
        _each(
            _json("'<|channel|>commentary to=functions.' + name + ' <|constrain|>json<|message|>'"),
            between="<|call|><|start|>assistant",
        ),
        start="<|start|>",
        middle="<|message|>",
        end="<|end|>",
        assistant="<|start|>assistant",
        turn="""
    {%- if thoughts -%}{{- "<|channel|>analysis<|message|>" + thoughts + "<|end|><|start|>assistant" -}}{%- endif -%}
    {%- if words and calls -%}{{- "<|channel|>commentary<|message|>" + words + "<|end|><|start|>assistant" -}}
    {%- elif words -%}{{- "<|channel|>final<|message|>" + words -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}{%- endif -%}
""",
    ),
    FormatFamily(
        "muse",
        _each(
            r"{{- ' to=' + name + '<|message|><atem:function_calls>\n' -}}"
            + _invoke(r"\n", "atem:")
            + "{{- '</atem:function_calls>' -}}",
            between="<|eom|><|start|>assistant",
        ),
        start="<|start|>",
        middle="<|message|>",
        end="<|eot|>",
        assistant="<|start|>assistant",
        turn="""
    {%- if thoughts -%}{{- " to=self<|message|>" + thoughts + "<|eom|><|start|>assistant" -}}{%- endif -%}
    {%- if words -%}{{- " to=user<|message|>" + words -}}{%- endif -%}
    {%- if words and calls -%}{{- "<|eom|><|start|>assistant" -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}{%- endif -%}
""",
    ),
    FormatFamily(
        "cohere-r7b",
        _COHERE,
        assistant=_COHERE_TURN,
        **_COHERE_ROLES,
        turn="""
    {%- if thoughts -%}{{- "<|START_THINKING|>" + thoughts + "<|END_THINKING|>" -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}
    {%- else -%}{{- "<|START_RESPONSE|>" + words + "<|END_RESPONSE|>" -}}{%- endif -%}
""",
        marker="<|START_ACTION|>",
    ),
    FormatFamily(
        "cohere2moe",
        _COHERE,
        assistant=_COHERE_TURN,
        **_COHERE_ROLES,
        after_thoughts="<|END_THINKING|>",
        opened="<|START_THINKING|>",
        turn="""
    {{- "<|START_THINKING|>" + (thoughts or "") + "<|END_THINKING|>" -}}
    {%- if words -%}{{- "<|START_TEXT|>" + words + "<|END_TEXT|>" -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}{%- endif -%}
""",
        marker="<|START_ACTION|>",
    ),
    FormatFamily(
        "command-r-plus",
        _each(_object("    ", name="tool_name", arguments="parameters"), "\nAction:\n```json\n[\n", ",\n", "\n]\n```"),
    ),
    FormatFamily("functionary-v3.1", _each(_json("'<function=' + name + '>'", "'</function>'"))),
    FormatFamily(
        "functionary-v3.2",
        _each(_json(r"name + '\n'"), between=">>>"),
        start="<|start_header_id|>",
        middle="<|end_header_id|>\n\n",
        end="<|eot_id|>",
        assistant="<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
        signs=">>>all >>>${recipient}",
        turn="""
    {%- if words -%}{{- "all\\n" + words -}}{%- endif -%}
    {%- if words and calls -%}{{- ">>>" -}}{%- endif -%}
    {%- if calls -%}{{- say_calls(calls) -}}{%- endif -%}
""",
    ),
    FormatFamily("firefunction", _each(_object(), " functools[", ", ", "]")),
    FormatFamily("granite3", _each(_object(), "<|tool_call|>[", ", ", "]"), marker="<|tool_call|>"),
    FormatFamily("granite-20b", _each(_object("<function_call> "), between="\n")),
    FormatFamily(
        "nemotron", _each(_object(), "<TOOLCALL>[", ", ", "]</TOOLCALL>"), opened="<think>\n", marker="<TOOLCALL>"
    ),
    FormatFamily(
        "apriel",
        _each(_object(), "<tool_calls>[", ", ", "]</tool_calls>"),
        assistant="<|im_start|>assistant\nMy thoughts are these:\n",
        before_thoughts="",
        after_thoughts="\n[BEGIN FINAL RESPONSE]\n",
        turn=_TURN.replace("thoughts or @OPENED@", "true"),
        marker="<tool_calls>",
    ),
    FormatFamily("jamba", _each(_object("\n "), "<tool_calls>[", ",", "\n]</tool_calls>"), marker="<tool_calls>"),
    FormatFamily(
        "longcat",
        _each(_object("<longcat_tool_call>", "</longcat_tool_call>"), between="\n"),
        marker="<longcat_tool_call>",
    ),
    FormatFamily(
        "internlm",
        _each(_object("<|action_start|><|plugin|>", "<|action_end|>", arguments="parameters")),
        marker="<|action_start|><|plugin|>",
    ),
    FormatFamily(
        "apertus",
        _each(_json("'{\"' + name + '\": '", "'}'"), "<|tools_prefix|>[", ", ", "]<|tools_suffix|>"),
        start="<|",
        middle="_start|>",
        end="<|end|>",
        marker="<|tools_prefix|>",
    ),
    FormatFamily(
        "gigachat",
        _each(_object("<|message_sep|>\n\nfunction call<|role_sep|>\n")),
        start="",
        middle="<|role_sep|>\n",
        end="<|message_sep|>\n\n",
    ),
    FormatFamily(
        "minicpm5",
        _each(
            _elements(
                """'<function name="' + name + '">'""",
                """'<param name="' + key + '">' + text(value) + '</param>'""",
                "'</function>'",
            ),
            between="\n",
        ),
        signs="Tool usage guidelines:",
        marker="<function",
    ),
    FormatFamily(
        "plamo3",
        _each(
            _json(
                "'<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>' + name"
                " + '<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>'"
                " + '<|plamo:constrain|>json<|plamo:msg|>'",
                "'<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>'",
            ),
            "<|plamo:begin_tool_requests:plamo|>",
            "",
            "<|plamo:end_tool_requests:plamo|>",
        ),
        before_thoughts="<|plamo:begin_think:plamo|>",
        after_thoughts="<|plamo:end_think:plamo|>",
        marker="<|plamo:begin_tool_requests:plamo|>",
    ),
    FormatFamily("llama3", _each(_object(arguments="parameters"), between="; ")),
]
FAMILIES = {family.name: family for family in _ALL}
