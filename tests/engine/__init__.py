"""A real llama-server whose model says what a test wants it to say."""

from tests.engine.scripted_model import write_model
from tests.engine.server import Engine, EngineUnavailable

__all__ = ["Engine", "EngineUnavailable", "write_model"]
