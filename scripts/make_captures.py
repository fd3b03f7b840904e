"""Records the files in captures/ anew: real exchanges with a real llama-server whose model is scripted."""

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.conftest import CHAT_PATH, chat_request  # noqa: E402
from tests.engine import Engine, write_model  # noqa: E402
from tests.engine.proxy import Proxy  # noqa: E402
from tests.engine.scripts import MERGED, SCRIPTS, SEPARATED  # noqa: E402

RECORDED = ["single", *SEPARATED, "prose-around", "unicode", "braces", "broken", "undeclared"]
ENGINE_PORT = 12434


def main() -> int:
    """Write a file for each of the recorded scripts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder / "scripted.gguf", SCRIPTS, default="semicolon-space", merged=MERGED)
        with Engine(folder / "scripted.gguf", folder / "llama-server.log", port=ENGINE_PORT) as engine:
            for script in RECORDED:
                with Proxy(engine.origin, folder / script) as proxy, proxy.client() as client:
                    client.post(CHAT_PATH, json=chat_request(script))
                (recorded,) = proxy.captures.iterdir()
                shutil.copyfile(recorded, ROOT / "captures" / f"{script}.mitm")
                print(f"captures/{script}.mitm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
