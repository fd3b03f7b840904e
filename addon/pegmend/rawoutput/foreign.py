"""Recognises tool calls in formats that no reader here knows.

Such a text must not go out as a plain answer, for then a call would be lost in silence.
"""

import re

# Opening markers of tool calls, by family: Llama's code calls; Hermes, Qwen3-Coder and GLM; Hunyuan, Apriel, MiniMax;
# Functionary; Mistral; Granite, Kimi, Solar and Gemma; DeepSeek (both bars); Cohere; gpt-oss; LFM2; Apertus; Nemotron;
# FireFunction and Phi; InternLM; and elements that carry the call themselves.
_MARKER = re.compile(
    r"""
      <\|python_tag\|>
    | <tool_call | <function_call | <function= | <function\ name= | <invoke\ name= | <start_function_call>
    | \[TOOL_CALLS\] | \[ARGS\]
    | <\|tool[_▁] | <｜tool[_▁] | <\|?｜?\s?DSML | <\|START_ACTION\|> | <\|channel\|>commentary\ to= | to=functions\.
    | <\|tools_prefix\|> | <TOOLCALL> | \bfunctools\[ | <\|action_start\|> | <\|function_call\|>
    | <(?:minimax|seed|atem|longcat|steptml|dots|ifm)[:|_]\w*(?:tool_call|function_call|invoke)
    | \]<\]minimax\[>\[<tool_call
    """,
    re.VERBOSE,
)


def find_marker(text: str) -> str | None:
    """Return the first such marker in `text`, which holds no strings of JSON calls any more."""
    found = _MARKER.search(text)
    return found.group() if found else None
