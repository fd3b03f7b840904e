"""What counts as a call in other formats than JSON: texts that leave their format, and texts that look like calls."""

import json
from typing import Any

import pytest

from pegmend.errors import TurnError
from pegmend.rawoutput import Tools, read

TOOLS: Tools = {
    "read": {"properties": {"path": {"type": "string"}}},
    "time": {"properties": {}},
    "search": {"properties": {"q": {"type": "string"}}},
    "write": {"properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    "weather": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    "define": {"properties": {"type": {"type": "string"}, "properties": {"type": "object"}}},
}
READ = ("read", {"path": "a"})
TIME = ("time", {})
UNPARSEABLE = "tool_calls_unparseable"
AMBIGUOUS = "tool_calls_ambiguous"
UNDECLARED = "tool_calls_undeclared"
GLM_READ = "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n"
QWEN_READ = "<function=read>\n<parameter=path>\na\n</parameter>\n"
CHANNEL = "<|channel|>commentary to=functions.read<|message|>"
ENDS = ("}", "<|end|>", "<|endoftext|>", "<end_of_turn>", "<|observation|>", "<｜end▁of▁sentence｜>")
HERMES_TIME = '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
M3 = "]<]minimax[>["
WEATHER_JSON = '{"name": "weather", "arguments": {"city": "Paris"}}'
WEATHER = ("weather", {"city": "Paris"})
QWEN_WEATHER = "<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
DEEPSEEK = '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'


def calls_in(text: str, *, truncated: bool = False) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in read(text, TOOLS, truncated=truncated).calls]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        # a missing tag
        (f"{QWEN_READ}<function=time>\n</function>", [READ, TIME]),
        (f"{QWEN_READ}</tool_call>", [READ]),
        (f"<tool_call>\n{QWEN_READ}</function>", [READ]),
        ("<tool_call>read<arg_key>path</arg_key><arg_value>a</tool_call>", [READ]),
        ('<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path": "a"}', [READ]),
        (DEEPSEEK, [READ]),
        # formats behind one another, and behind thoughts
        (f'{GLM_READ}</tool_call>\n<tool_call>\n{{"name": "time", "arguments": {{}}}}\n</tool_call>', [READ, TIME]),
        ('<think>x</think>[read(path="a")]', [READ]),
        (f'<|channel|>analysis<|message|>x<|end|>{CHANNEL}{{"path":"a"}}<|call|>', [READ]),
        (f'<|channel|>analysis<|message|>x<|end|>assistant{CHANNEL}{{"path":"a"}}<|call|>', [READ]),
        (f'<|channel|>analysis<|message|>x{CHANNEL}{{"path":"a"}}<|call|>', [READ]),
        ('<think>x</thinking>\n<tool_call>{"name": "time", "arguments": {}}</tool_call>', [TIME]),
        ('<|python_tag|>read.call(path="a"); time.call()', [READ, TIME]),
        ('<|python_tag|>read.call(path="a")\ntime.call()<|eom_id|>', [READ, TIME]),
        ('<invoke  name="time"></invoke>', [TIME]),
        ("assistant to=time<|channel|>analysis <|constrain|>xml<|message|><|call|>", [TIME]),
        (f"<analysis>I shall call time.</analysis>\n{HERMES_TIME}", [TIME]),
        # arguments that look like the definition of a tool
        (
            '<tool_call>{"name": "define", "arguments": {"type": "object", "properties": {}}}</tool_call>',
            [("define", {"type": "object", "properties": {}})],
        ),
        # tags of thoughts that are only told of
        (
            'I handle `<think>`. {"name": "search", "arguments": {"q": "split(\\"</think>\\")"}}',
            [("search", {"q": 'split("</think>")'})],
        ),
        (
            'I handle `<think>`. {"name": "search", "arguments": {"q": "<think>x</think>"}}\n[time()]',
            [("search", {"q": "<think>x</think>"}), TIME],
        ),
        (
            '[THINK]Hm.[/THINK]I drop `[THINK]`.[TOOL_CALLS]search[ARGS]{"q": "a[/THINK]b"}',
            [("search", {"q": "a[/THINK]b"})],
        ),
        (
            'I see `<think>`<|tool_call>call:search{q:<|"|></think><|"|>}<tool_call|>',
            [("search", {"q": "</think>"})],
        ),
        (f'<think>use "x"</think>"Sure." {WEATHER_JSON}', [WEATHER]),
        # strings of Python, and strings in strings
        ('<|tool_call_start|>[search(q="""ls -la""")]<|tool_call_end|>', [("search", {"q": "ls -la"})]),
        ('<|tool_call_start|>[search(q="echo "hi"")]<|tool_call_end|>', [("search", {"q": 'echo "hi"'})]),
        (
            '<|tool_call_start|>[search(q="git commit -m "x y" -a")]<|tool_call_end|>',
            [("search", {"q": 'git commit -m "x y" -a'})],
        ),
        ('{"name": "search", "arguments": "{\\"q\\": \\"a\nb\\"}"}', [("search", {"q": "a\nb"})]),
        # line breaks of Windows; nothing that says what a value is
        ("<function=read>\r\n<parameter=path>\r\na\r\n</parameter>\r\n</function>", [READ]),
        ("<function=time>\n<parameter=x>\n(1, 2)\n</parameter>\n</function>", [("time", {"x": "(1, 2)"})]),
        # tokens that the engine does not print
        ('read.call(path="a")', [READ]),
        ('read.call(path="a")\ntime.call()', [READ, TIME]),
        ('[weather(city="Paris")]Checking the weather.', [WEATHER]),
        # quotation marks beside a tag that do not enclose it
        (f'<think>say "hi"</think>"hi"\n{HERMES_TIME}\n<think>next</think>ok', [TIME]),
        (f"<think>I call `time`</think>```json\n{WEATHER_JSON}\n```\n<think>next</think>ok", [WEATHER]),
        (
            f'<think>{'The user said "Paris, please" so ' * 12}I call it with "Paris"</think>{WEATHER_JSON}',
            [WEATHER],
        ),
        (f"<think>I run:\n```\nls\n```</think>```json\n{WEATHER_JSON}\n```", [WEATHER]),
        (f"`a`{QWEN_WEATHER}`b`", [WEATHER]),
        ('<think>Hm.</think>\n\nweather.call(city="Paris")', [WEATHER]),
        # words beside JSON that a marker tells
        (f"Run:\n\n```bash\necho ${{HOME}} to search\n```\n{HERMES_TIME}", [TIME]),
        (f"I read the config. It returns `{{ ok: true }}`.\n{HERMES_TIME}", [TIME]),
        # fences of programs beside calls
        (f"Run:\n\n```bash\nls\n```\n\n```bash\npwd\n```\n\nNow:\n{HERMES_TIME}", [TIME]),
        (f"Run:\n\n```bash\nls\n```\n\n```bash\npwd\n```\n\nNow:\n{QWEN_WEATHER}", [WEATHER]),
        (f"```xml\n{QWEN_WEATHER}\n```\n```xml\n{GLM_READ}</tool_call>\n```", [WEATHER, READ]),
        # strings with quotes of a shell that nothing escapes
        *[
            (f"<|tool_call_start|>[search(q='{command}')]<|tool_call_end|>", [("search", {"q": command})])
            for command in (
                "find . -name '*.py' -o -name '*.js'",
                "cat './a.txt'",
                "date '+%Y-%m-%d'",
                "grep '[a-z]' x",
                "git commit -m 'for real'",
                "echo '' > f",
            )
        ],
        # the line break in front of a closing tag that is missing belongs to the markup, another one to the value
        (
            "<function=write>\n<parameter=content>\nx\n\n<parameter=path>\na\n</parameter>\n</function>",
            [("write", {"content": "x\n", "path": "a"})],
        ),
        ("<function=write>\n<parameter=content>\nx\n\n</function>", [("write", {"content": "x\n"})]),
        # data and addresses beside calls
        (f'Payload: {{"params": {{"x": 1}}}}\n{HERMES_TIME}', [TIME]),
        (f"See https://\n{WEATHER_JSON}", [WEATHER]),
        (
            f'<|channel|>commentary<|message|>{{"path":"a"}} goes.<|end|>assistant{CHANNEL}{{"path":"a"}}<|call|>',
            [READ],
        ),
        # calls in programs
        ('```ruby\ntime = lambda { puts 1 }\ntime.call(x="x")\n```\nDone.', []),
        ("```js\nfunction a(){}\ntime.call();\n```\n", []),
        ("Run it as:\n\n```python\nsearch(q='a')\n```", []),
        ("```python\ndef f():\n    return search(q='ls')\n\n\nsearch(q='ls')\n```", []),
        ("```xml\n<weather><city>Paris</city></weather>\n```", []),
        ("```html\n<search>{q}</search>\n```", []),
        ('```python\nx = foo(\n    [weather(city="a")])\n```', []),
        # a fence around calls and nothing else
        (f"```xml\n{QWEN_WEATHER}\n```", [WEATHER]),
        ('```python\n[weather(city="Paris"), time()]\n```', [WEATHER, TIME]),
        # JSON and elements in the tokens of another format
        (f"<|tool_call_start|>[{WEATHER_JSON}]<|tool_call_end|>", [WEATHER]),
        (f"<|python_start|>{WEATHER_JSON}<|python_end|>", [WEATHER]),
        (f"<|python_start|><|python_end|>{WEATHER_JSON}", [WEATHER]),
        (f"<function_calls>\n{WEATHER_JSON}\n</function_calls>", [WEATHER]),
        (
            '<function_calls>\n<invoke name="read">\n<parameter name="path">a</parameter></invoke>\n</function_calls>',
            [READ],
        ),
        # words beside calls that markers tell
        (f"I edit `function App() {{ return null }}`, so I read it.\n{QWEN_WEATHER}", [WEATHER]),
        (f"Let me run time() first.\n{QWEN_WEATHER}", [WEATHER]),
        # plain answers
        ("```ts\nconst a = { type: 'x' };\n```\nYou can read more in the docs.", []),
        ("```ts\ninterface Props { name: string; read: boolean }\n```", []),
        ("#include <functional>\n// read the file\n", []),
        ('```json\n{"editor": {"tabSize": 2}, "read": {"limit": 3}}\n```', []),
        ("query {\n  read {\n    name\n  }\n}", []),
        ("<TOOLCALL>[]</TOOLCALL>", []),
        ("[TOOL_CALLS][]", []),
        ("The price is <s>5</s>", []),
        ("all\nBecause all match.", []),
        ("<answer>42</answer>", []),
        ("It is time.<|im_end|>", []),
        ("[time()](https://example.org/time) returns the time.", []),
        ("[read(name) for name in names]", []),
        ("[time()] = 1", []),
        ("<think>The time() call?</think>It is noon.", []),
    ],
)
def test_calls(text: str, calls: list[Any]) -> None:
    assert calls_in(text) == calls


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Wrap it in `<think>` and `</think>` tags.", "Wrap it in `<think>` and `</think>` tags."),
        ("I removed `</think>` from it.", "I removed `</think>` from it."),
        ('Say "yes"</think>"yes"', '"yes"'),
        ("<think>I strip ``</think>`` tags. I answer.</think>Yes", "Yes"),
        (f"<think>{'It reads `weather` and ' * 12}then strips `</think>` there.</think>Yes", "Yes"),
        ("I run:\n```\nls\n```</think>`ls` lists.", "`ls` lists."),
        *[
            (text.replace("JSON", WEATHER_JSON), "Sure:")
            for text in ("Sure:\n```json\nJSON\n", "Sure:\n````json\nJSON\n````", "Sure:\n``` json\nJSON\n```")
        ],
        ("<think>a</think>re.sub(r'<think>.*?</think>', '', s)", "re.sub(r'<think>.*?</think>', '', s)"),
        (f"Use `<think>...</think>`.\n{HERMES_TIME}", "Use `<think>...</think>`."),
        ("<|channel|>analysis<|message|>`<|end|>` ends.<|end|><|start|>assistant<|channel|>final<|message|>Yes", "Yes"),
        (f"```bash\nls\n```\n{HERMES_TIME}", "```bash\nls\n```"),
        (f"```bash\nls\n```\n{HERMES_TIME}\n\n```bash\npwd\n```\nok", "```bash\nls\n```\n```bash\npwd\n```\nok"),
        (
            "Use `<think>`.\n\n```python\nx.split('</think>')\n```",
            "Use `<think>`.\n\n```python\nx.split('</think>')\n```",
        ),
        ("<tool_calls>[]</tool_calls>Hi", "Hi"),
        *[(f"{WEATHER_JSON}{end}", "") for end in ENDS],
        (f"<|tool_call|>[{WEATHER_JSON}]<|/tool_call|>", ""),
        (f"<tools>\n{WEATHER_JSON}\n</tools>", ""),
        (f"<answer>\n<tool_calls>[{WEATHER_JSON}]</tool_calls></answer>", ""),
        (f"[BEGIN FINAL RESPONSE]\n<tool_calls>[{WEATHER_JSON}]</tool_calls>\n[END FINAL RESPONSE]", ""),
        ('[weather(city="Paris")]<|python_end|>', ""),
        ("The price is <s>5</s>", "The price is <s>5</s>"),
        ("all\nBecause all match.", "all\nBecause all match."),
        ("<answer>42</answer>", "<answer>42</answer>"),
        ("It is time.<|im_end|>", "It is time."),
        ("<|content_text|>Hi<|end_message|>", "Hi"),
        ("<|content_thinking|>Hm<|end_message|><|message_model|><|content_text|>Hi<|end_message|>", "Hi"),
        (f"Before.\n{GLM_READ}</tool_call>\nAfter.", "Before.\n\nAfter."),
        ("<|channel|>analysis<|message|>x<|end|>It is noon.<|return|>", "It is noon."),
        ("<code>[time()]</code>", "<code>[time()]</code>"),
        ('<li>[read(path="a")]</li>', '<li>[read(path="a")]</li>'),
        ('<think>x</think><item><param name="a">b</param></item>', '<item><param name="a">b</param></item>'),
        ("texts = [read(path=p) for p in paths]\nreturn texts", "texts = [read(path=p) for p in paths]\nreturn texts"),
        ('return agent.invoke({"input": q})', 'return agent.invoke({"input": q})'),
        ("Turns end with <|eot_id|> in Llama.", "Turns end with <|eot_id|> in Llama."),
    ],
)
def test_words(text: str, content: str) -> None:
    assert read(text, TOOLS).content == content


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # a value or a key that has swallowed what came next, or tells of calls
        (f"{GLM_READ}<tool_call>time\n</tool_call>", AMBIGUOUS),
        ("<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</tool_call>\n<tool_call>time</tool_call>", AMBIGUOUS),
        ("<tool_call>read\n<arg_key>path\n<arg_value>a</arg_value>\n</tool_call>", UNPARSEABLE),
        (f"<tool_call>read\n<arg_key>path\n<arg_value>a</arg_value>\n</tool_call>\n{GLM_READ}</tool_call>", AMBIGUOUS),
        (f"{QWEN_READ.replace('</parameter>', '')}{QWEN_READ}</function>", AMBIGUOUS),
        ("<function=weather><parameter=city>Paris<parameter=days>3</parameter></function>", AMBIGUOUS),
        (
            '<function name="write"><param name="path"><![CDATA[a]]></param><param name="content"><![CDATA[x</param>'
            '</function><function name="read"><param name="path"><![CDATA[b]]></param></function>',
            AMBIGUOUS,
        ),
        ("<function=read><parameter=path>a</parameter><parameter=path>b</parameter></function>", AMBIGUOUS),
        ("<|tool_call>call:read{path:a,path:b}<tool_call|>", AMBIGUOUS),
        # a value that tells of parameters
        (
            '<minimax:tool_call>\n<invoke name="write">\n<parameter name="content"><s>'
            '<parameter name="x">1</parameter>\n<parameter name="y">2</parameter>\n</s>\n</parameter>\n</invoke>\n'
            "</minimax:tool_call>",
            AMBIGUOUS,
        ),
        (
            "<function=write>\n<parameter=content>\nUse:\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
            "End.\n</parameter>\n</function>",
            AMBIGUOUS,
        ),
        # an expression
        *[
            (f"<|tool_call_start|>[search(q={expression})]<|tool_call_end|>", UNPARSEABLE)
            for expression in (
                *('"a" + "b"', '"a" "b"', '"a" if x else "b"', '"a".join("b")', '"a" % "b"', "'cat ' + path + '.txt'"),
                *("'a' * 3 + 'b'", "'' or x or 'b'", "'a' if x=='1' else 'b'", '"a "\n  "b "\n  "c"', "'a' == 'b'"),
            )
        ],
        # thoughts
        ('I handle <think>. {"name": "search", "arguments": {"q": "<think>x</think>"}}', AMBIGUOUS),
        ('[THINK]Hm.[/THINK]I drop [THINK].[TOOL_CALLS]search[ARGS]{"q": "a[/THINK]b"}', AMBIGUOUS),
        ('<think>Hm. {"name": "search", "arguments": {"q": "a</think>b"}}', AMBIGUOUS),
        ('<think>Hm. {"name": "search", "arguments": {"q": "</think>"}}', AMBIGUOUS),
        (f"{WEATHER_JSON}\nI removed `</think>`.", AMBIGUOUS),
        (f"<think>plan <tool_call>\n{QWEN_READ}</function>\n</tool_call>\n<think>next</think>", AMBIGUOUS),
        (
            "<think>plan <tool_call>\n<function=read>\n<parameter=path>\nuse </think> here\n</parameter>\n</function>\n"
            "</tool_call>",
            AMBIGUOUS,
        ),
        (f"<think>I will call it. {DEEPSEEK}", AMBIGUOUS),
        (f'{{"name": "time", "arguments": {{}}}}\n</think>\n{GLM_READ}</tool_call>', AMBIGUOUS),
        ('<reasoning>{"name": "time", "arguments": {}} but no</reasoning>No.', AMBIGUOUS),
        (f"<analysis>{HERMES_TIME}</analysis>\nNo.", AMBIGUOUS),
        ("<thinking><think>I will look.</think>\n[time()]</thinking>", AMBIGUOUS),
        ('<|channel|>analysis<|message|>x<|end|>Now to=functions.read {"path": "a"}<|call|>', AMBIGUOUS),
        # what only looks like a call, or like its definition
        ("Write `<function=time></function>` to call it.", AMBIGUOUS),
        ('[{"name": "time", "description": "Tells the time.", "parameters": {}}]', AMBIGUOUS),
        ('{"name": "time", "parameters": {"type": "object"}}', AMBIGUOUS),
        ('Column: {"name": "time", "type": "timestamp"}', AMBIGUOUS),
        ("<|start|>assistant to=user<|message|>Hi", ""),
        (
            f'{M3}<tool_call>{M3}<invoke name="write">{M3}<path>a{M3}<content>b{M3}</content>{M3}</path>{M3}</invoke>'
            f"{M3}</tool_call>",
            AMBIGUOUS,
        ),
        (f"The format is:\n```xml\n{QWEN_WEATHER}\n```\nThe city stands there.", AMBIGUOUS),
        ('```python\n[read(path="a")]\n```\nis how to write it.', AMBIGUOUS),
        (f"For the README:\n````md\nExample:\n```xml\n{QWEN_WEATHER}\n```\n````\nShall I?", AMBIGUOUS),
        (f"```md\n## Tools\n```xml\n{QWEN_WEATHER}\n```\nMore.\n```\nok", AMBIGUOUS),
        (f"```bash\nls\n\nNow:\n```xml\n{QWEN_WEATHER}\n```", AMBIGUOUS),
        (f"~~~xml\n{QWEN_WEATHER}\n~~~\n\nOk?", AMBIGUOUS),
        ("Write `call: <function=time></function>` to call it.", AMBIGUOUS),
        ('```python\ncreate(\n    tools=[{"name": "weather", "parameters": {"city": "string"}}],\n)\n```', AMBIGUOUS),
        *[
            (f"```\n{program}\n```", AMBIGUOUS)
            for program in (
                f"def fake():\n    return {WEATHER_JSON}",
                f"# {WEATHER_JSON}\nx = 1",
                f"const f = () => ({WEATHER_JSON});",
                f"cat <<EOF > x.json\n{WEATHER_JSON}\nEOF",
                f'x = """\n{WEATHER_JSON}\n"""',
                f"x = r'{WEATHER_JSON}'",
                f"const x = `{WEATHER_JSON}`;",
            )
        ],
        (f"<think>strip `</think>` tags. I could do {HERMES_TIME} but must ask, so", AMBIGUOUS),
        (f"print(json.dumps({WEATHER_JSON}))", AMBIGUOUS),
        (f"curl -d '{WEATHER_JSON}' http://x", AMBIGUOUS),
        (f"message = {WEATHER_JSON}\nprint(message)", AMBIGUOUS),
        (f"// {WEATHER_JSON}", AMBIGUOUS),
        # a tool that is not declared
        (">>>delete\n{}", UNDECLARED),
        ("<tool_call>delete</tool_call>", UNDECLARED),
        ("<|channel|>commentary to=python <|constrain|>code<|message|>1", UNDECLARED),
        # broken
        ("<tool_call>read\n<arg_key>path</arg_key>\na</arg_value></tool_call>", UNPARSEABLE),
        ('<|START_ACTION|>[{"tool_name": "read", "arguments": {"path": "a"}}]<|END_ACTION|>', UNPARSEABLE),
        ('<|START_ACTION|>[{"x": 1}]<|END_ACTION|>', UNPARSEABLE),
        ("<ifm|tool_calls><ifm|tool_call>{}</ifm|tool_call></ifm|tool_calls>", UNPARSEABLE),
        ("<ifm|tool_calls><ifm|tool_call>[]</ifm|tool_call></ifm|tool_calls>", UNPARSEABLE),
        ('<|tools_prefix|>[{"re\tad": {}}]', UNDECLARED),
        ('<|channel|>commentary json<|message|>{"path": "a"}<|call|>', UNPARSEABLE),
        ('<|channel|>commentary <|constrain|>json<|message|>{"path": "a"}', UNPARSEABLE),
        ("<|tool_calls_section_begin|>read<|tool_calls_section_end|>", UNPARSEABLE),
        ('{"name": "read", "arguments": {"properties": 1, "x": ' + "1" * 5000 + "}}", UNPARSEABLE),
        (f"<|channel|>commentary<|message|>{WEATHER_JSON}<|end|>", UNPARSEABLE),
        # left over from a format that is not read
        ('I check the weather.weather{"city": "Paris"}', UNPARSEABLE),
        ('[weather(city="Paris")] This tells the weather', UNPARSEABLE),
        ('[weather(city="Paris")].', UNPARSEABLE),
        ('`[weather(city="Paris")]`', UNPARSEABLE),
        ('**[weather(city="Paris")]**', UNPARSEABLE),
        ('[delete(path="/"), weather(city="Paris")]', UNPARSEABLE),
        ('[functions.weather(city="Paris")]', UNPARSEABLE),
        ('[\n  weather("Paris"),\n  time()\n]', UNPARSEABLE),
        *[
            (text, UNPARSEABLE)
            for text in (
                'print(default_api.weather(city="Paris"))',
                'weather.call(city="Paris")\nLet me see.',
                'Sure.\nweather.call(city="Paris")',
                '<tool_code>weather(city="Paris")</tool_code>',
                'weather(\n  city="Paris"\n)',
                "weather(city='''\nParis\n''')",
                '1. weather(city="Paris")\n2. time()',
                'Text [weather(city="Paris"),\n time()]',
                '<tool_use>\n<name>weather</name>\n<arguments>{"city": "Paris"}</arguments>\n</tool_use>',
            )
        ],
        ("<weather>\n<city>Paris</city>\n</weather>", UNPARSEABLE),
        ('<weather>{"city": "Paris"}</weather>', UNPARSEABLE),
        ('<tool name="weather">{"city": "Paris"}</tool>', UNPARSEABLE),
        (f"{QWEN_WEATHER}\n<read>\n<path>a</path>\n</read>", UNPARSEABLE),
        ('```tool_code\nprint(weather(city="Paris"))\n```', UNPARSEABLE),
        ('```tool_code\nprint(default_api.weather(city="Paris"))\n```', UNPARSEABLE),
        ('```python\nweather(city="Paris")\n```', UNPARSEABLE),
        ('Let me check.\n\nweather(city="Paris")', UNPARSEABLE),
        ('<code>\nweather(city="Paris")\n</code>', UNPARSEABLE),
        ('weather\n```json\n{"city": "Paris"}\n```', UNPARSEABLE),
        ('{"tool": "weather", "params": {"city": "Paris"}}', AMBIGUOUS),
        ('{"tool_name": "weather", "tool_args": {"city": "Paris"}}', AMBIGUOUS),
        ('{"tool": "weather", "city": "Paris"}', AMBIGUOUS),
        ('I will do it. [read(path="a"), time()]', UNPARSEABLE),
        ('read(path="a")\ntime()', UNPARSEABLE),
        ('[[read(path="a"), time()]]', UNPARSEABLE),
        ('```tool_code\nread(path="a")\n```', UNPARSEABLE),
        ('functions.read:0{"path": "a"}', UNPARSEABLE),
        ("call:read{path:a}", UNPARSEABLE),
        ('functionread\n```json\n{"path": "a"}\n```', UNPARSEABLE),
        ('>>>read\n{"path": "a"}>>>time\n', UNPARSEABLE),
        ('{"action": "read", "action_input": {"path": "a"}}', AMBIGUOUS),
        ("**Action:** read\n**Action Input:** {}", UNPARSEABLE),
        ('read{"path": "a"}\nThat was it.', UNPARSEABLE),
        ("time {\n  ticks: 1\n}", UNPARSEABLE),
        ("<tool_call>", UNPARSEABLE),
        ("Sure. <tool_call>\n<function", UNPARSEABLE),
    ],
)
def test_what_is_not_certain_is_an_error(text: str, code: str) -> None:
    try:
        calls_in(text)
        found = ""
    except TurnError as error:
        found = error.code
    assert found == code


@pytest.mark.parametrize(
    "tail",
    [
        "\n<tool_call>",
        "\n<tool_call>ti",
        "\n<tool_call>\n<function=time>",
        "\n<tool_call>\n{",
        "\n<|tool_",
        "[TOOL_CALLS]time[ARGS]",
        "[TOOL_CALLS]ti",
        "\n<｜tool▁call▁begin｜>ti",
        "\n<function na",
        '\n<|START_ACTION|>[{"tool_',
        '\n<|tools_prefix|>[{"ti',
        "\n<|channel|>commentary to=functions.ti",
        "\n<minimax:tool_call>\n<invoke na",
        "\n[time(), ti",
        "<|start|>assi",
        "\n<tool_call:open",
    ],
)
def test_a_cut_turn_keeps_its_complete_calls(tail: str) -> None:
    for text in (f"{GLM_READ}</tool_call>{tail}", f"{DEEPSEEK}{tail}"):
        turn = read(text, TOOLS, truncated=True)
        assert [(call.name, json.loads(call.arguments)) for call in turn.calls][:1] == [READ]
        assert turn.content == ""


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('<|START_ACTION|>[{"tool_name": "read", "parameters": {"path": "a"}},{"tool_', [READ]),
        ('[read(path="a"), ti', [READ]),
        ('<|tools_prefix|>[{"read": {"path": "a"}}, {"ti', [READ]),
        (DEEPSEEK + "\n<｜tool▁call▁begin｜>ti", [READ]),
    ],
)
def test_a_cut_list_keeps_its_complete_calls(text: str, calls: list[Any]) -> None:
    assert calls_in(text, truncated=True) == calls


def test_a_broken_call_in_front_of_the_cut_is_an_error() -> None:
    text = f"<tool_call>\n<function=read>\n<x>a</x>\n</function>\n</tool_call>\n{HERMES_TIME}"
    with pytest.raises(TurnError) as raised:
        calls_in(text, truncated=True)
    assert raised.value.code == UNPARSEABLE


def test_words_behind_a_call_are_no_cut_marker() -> None:
    assert read(f"{HERMES_TIME}\nif a < b and c", TOOLS, truncated=True).content == "if a < b and c"


def test_a_cut_answer_loses_nothing() -> None:
    for text in ("if a < b and c", "List<str", "see [A", "<b>bold</b"):
        assert read(text, TOOLS, truncated=True).content == text


@pytest.mark.parametrize("text", ["(x)", "\n{x}", "{'name': 'Rex'}"])
def test_a_tool_without_a_name_names_nothing(text: str) -> None:
    assert read(text, {"": {}}).content == text


def test_thoughts_as_content_beside_a_fence_of_calls() -> None:
    for text in (f"<think>Hm.</think>\n```xml\n{QWEN_WEATHER}\n```", f"```\n<think>Hm.</think>\n{QWEN_WEATHER}\n```"):
        turn = read(text, TOOLS, splits_thoughts=False)
        assert [call.name for call in turn.calls] == ["weather"]
        assert turn.content == "<think>Hm.</think>"


def test_a_cut_fence_keeps_the_calls_of_the_one_before() -> None:
    turn = read(f"```xml\n{QWEN_WEATHER}\n```\n```xml\n{QWEN_WEATHER[:50]}", TOOLS, truncated=True)
    assert [call.name for call in turn.calls] == ["weather"]
    assert turn.content == ""
