"""MiniCPM 5: `<function name="NAME"><param name="KEY">VALUE</param></function>`, one behind the other.

A value may be a CDATA section. The space before `name` is missing where the engine does not print it.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.elements import Parameters, own_value
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_CALL = re.compile(r'\s*<function\s*name="(?P<name>[^"<>\n]{1,256})">')
_CALL_END = re.compile(r"\s*</function>")
_PARAMETER_TAG = re.compile(r'<param\s*name="(?P<name>[^"<>\n]{1,256})">(?P<cdata>\s*<!\[CDATA\[)?')
_PARAMETER = re.compile(rf"\s*{_PARAMETER_TAG.pattern}")
# A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
_VALUE_END = re.compile(r"</param>(?=\s*(?:<param\s*name=|</function>|\Z))")
_CDATA_END = re.compile(r"\]\]>\s*</param>(?=\s*(?:<param\s*name=|</function>|\Z))")
_CDATA_TAG = re.compile(r"<param\s*name=|</function>\s*<function\s*name=|<!\[CDATA\[")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    while call := cursor.take(_CALL):
        parameters = Parameters(tools, call["name"])
        while parameter := cursor.take(_PARAMETER):
            if parameter["cdata"]:
                parameters.add_text(parameter["name"], own_value(cursor, _CDATA_END, _CDATA_TAG))
            else:
                parameters.add(parameter["name"], own_value(cursor, _VALUE_END, _PARAMETER_TAG))
        cursor.expect(_CALL_END, "</function>")
        yield parameters.call()


FAMILY = Family("minicpm5", r'<function\s*name="', by_grammar(_calls))
