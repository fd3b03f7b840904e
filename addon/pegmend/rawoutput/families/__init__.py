"""The families, in the order in which they are asked where several could begin at the same place."""

from pegmend.rawoutput.families import (
    apertus,
    arg_keys,
    cohere,
    deepseek,
    dsml,
    functionary,
    gemma,
    ignored,
    inkling,
    invoke,
    json_calls,
    kimi,
    kimi_k3,
    messages,
    minicpm5,
    minimax_m3,
    mistral,
    plamo,
    pythonic,
    qwen_xml,
    react,
    reasoning,
    solar,
    unfinished,
)
from pegmend.rawoutput.family import Family

# These have markers of their own. Few of them can begin at the same place: a comment says why one comes first.
_MARKED: tuple[Family, ...] = (
    functionary.V31,  # `<function=NAME>` opens this one and the next; a brace behind it tells JSON from elements
    qwen_xml.FAMILY,  # `<tool_call>` opens this one, the next and JSON; what stands behind it tells them apart
    arg_keys.FAMILY,
    dsml.FAMILY,
    invoke.STEP,
    deepseek.FAMILY,
    kimi.FAMILY,
    kimi_k3.RESPONSE,
    kimi_k3.TOOLS,
    minimax_m3.FAMILY,
    invoke.MINIMAX,
    invoke.DOTS,
    minicpm5.FAMILY,
    gemma.FAMILY,
    mistral.FAMILY,
    cohere.ACTION,
    cohere.RESPONSE,
    apertus.FAMILY,
    solar.FAMILY,
    plamo.FAMILY,
    inkling.FAMILY,
    messages.FAMILY,
    pythonic.MARKED,
    pythonic.BUILTIN,
    unfinished.FAMILY,  # the markers of all the others, where the text ends right behind them
)
# These are known by their shape alone, so that any marker counts more; JSON is what all else is made of.
_SHAPED: tuple[Family, ...] = (
    functionary.V32,
    react.FAMILY,
    mistral.BARE,
    pythonic.BARE,
    json_calls.FAMILY,
)
_CALLS = (*_MARKED, *_SHAPED)

# Thoughts come first: what stands in them is no call, and their tags are no other family's.
FAMILIES: tuple[Family, ...] = (ignored.FAMILY, reasoning.ended_by(_CALLS), reasoning.CLOSED, *_CALLS)
