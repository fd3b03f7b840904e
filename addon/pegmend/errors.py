"""The documented errors: why a turn could not be given back.

Exception
└── TurnError                  a turn that the engine refused and that cannot be proven either
    ├── Unparseable            there is something like a call that cannot be read as one
    ├── Incomplete             calls are known, but not whether they are all
    ├── Undeclared             a call to a tool that the request does not declare
    ├── Ambiguous              two readings are possible
    └── RawOutputUnavailable   what the model wrote is not to be had

Each has a section in docs/errors.md, which the message links to.
"""

from collections.abc import Sequence
from typing import ClassVar

from pegmend.turn import ToolCall

DOCUMENTATION = "https://github.com/pegmend/pegmend/blob/main/docs/errors.md"
TYPE = "tool_call_parse_error"
STATUS = 422
"""Not a 5xx: the OpenAI SDKs send those twice more, and the model would only say the same again."""

_RAW_OUTPUT_LIMIT = 16_384


class TurnError(Exception):
    """Base of the documented errors.

    `message` says what happened and what to do, `raw_output` is the model's text as far as it is known, `calls` are the
    calls that could be read before things went wrong: for people, not for running.
    """

    code: ClassVar[str]

    def __init__(self, message: str, *, raw_output: str = "", calls: Sequence[ToolCall] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.raw_output = raw_output
        self.calls = tuple(calls)

    @property
    def documentation(self) -> str:
        """The address of this error's section in the documentation."""
        return f"{DOCUMENTATION}#{self.code}"

    @property
    def bounded_raw_output(self) -> str:
        """The raw output, cut where it is longer than an error body should be (16,384 characters)."""
        if len(self.raw_output) <= _RAW_OUTPUT_LIMIT:
            return self.raw_output
        left_out = len(self.raw_output) - _RAW_OUTPUT_LIMIT
        return f"{self.raw_output[:_RAW_OUTPUT_LIMIT]}... ({left_out} more characters)"


class Unparseable(TurnError):
    """There is something like a call that cannot be read as one."""

    code = "tool_calls_unparseable"


class Incomplete(TurnError):
    """Calls are known, but not whether they are all."""

    code = "tool_calls_incomplete"


class Undeclared(TurnError):
    """A call to a tool that the request does not declare."""

    code = "tool_calls_undeclared"


class Ambiguous(TurnError):
    """Two readings are possible."""

    code = "tool_calls_ambiguous"


class RawOutputUnavailable(TurnError):
    """What the model wrote is not to be had."""

    code = "raw_output_unavailable"
