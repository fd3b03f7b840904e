"""Tests of the core, which knows nothing of mitmproxy."""
