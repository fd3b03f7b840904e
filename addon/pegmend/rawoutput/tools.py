"""The tools that may be called, and what their schemas say."""

from collections.abc import Mapping
from typing import Any

Tools = Mapping[str, Mapping[str, Any]]
"""The tools that may be called: the name, and the JSON schema of the parameters."""


def properties_of(tools: Tools, name: str) -> Mapping[str, Any]:
    """Return the parameters of a tool and their schemas, none where its schema does not tell them."""
    properties = tools.get(name, {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def declares(tools: Tools, name: str, key: str) -> bool:
    """Whether a tool names this parameter."""
    return key in properties_of(tools, name)
