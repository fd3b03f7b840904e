"""The protocols that clients speak: reading a request, writing a turn."""
