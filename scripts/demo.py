"""Shows the fault and its repair on a real llama-server whose model says what the demo needs."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.engine import Engine, EngineUnavailable, write_model  # noqa: E402
from tests.engine.scripts import SEPARATED, call  # noqa: E402
from tests.engine.server import API_PREFIX  # noqa: E402

from scripts.reproduce import NO_ENGINE, ONE_FOLDER, TWO_FILES, Target, show  # noqa: E402

LOG_MARK = "unparsed peg-native output: "


def main() -> int:
    """Run the demo and return the exit status: 0 where the repair works."""
    scripts = {"two": [SEPARATED["semicolon-space"]], "one": [call("list_directory", path="notes")]}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "scripted.gguf"
        write_model(model, scripts, default="two")
        try:
            with Engine(model, Path(folder) / "llama-server.log") as engine:
                target = Target(engine.origin, f"{API_PREFIX}/v1", "scripted")
                status = show(target, TWO_FILES, f"{ONE_FOLDER} script:one ", lambda: _last_remainder(engine))
        except EngineUnavailable as error:
            print(f"demo.py: {error}", file=sys.stderr)
            return NO_ENGINE
    print("\nThe engine's log lacks the first call; pegmend's answer does not." if status == 0 else "\nNot repaired.")
    return status


def _last_remainder(engine: Engine) -> str:
    return LOG_MARK + engine.log_text().rpartition(LOG_MARK)[2].partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
