"""The script for `mitmdump -s addon/main.py`."""

from pegmend.addons import addons as addons
