"""Records the files in captures/ anew: real exchanges with a real llama-server whose model is scripted."""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.conftest import CHAT_PATH, chat_request, two_calls  # noqa: E402
from tests.engine import Engine, write_model  # noqa: E402
from tests.engine.proxy import Proxy  # noqa: E402
from tests.engine.scripts import MERGED, SCRIPTS, SEPARATED  # noqa: E402

WHOLE = ["single", *SEPARATED, "prose-around", "unicode", "braces", "broken", "undeclared"]
STREAMED = ["single", "newline", "comma", "braces", "undeclared"]


def record(engine: Engine, folder: Path, name: str, request: dict[str, Any], encoding: str = "utf-8") -> None:
    """Send a request through a proxy that follows the engine's log, and keep its record of that."""
    with Proxy(engine.origin, folder, options=[f"pegmend_log=file:{engine.log}"]) as proxy, proxy.client() as client:
        client.post(CHAT_PATH, json=chat_request("single", tool_choice="none"))
        time.sleep(0.8)  # the log is followed from the first request on
        client.post(CHAT_PATH, json=chat_request("semicolon"))  # a failure with a second run sets the engine's clock
        for path in proxy.captures.iterdir():
            path.unlink()
        body = json.dumps(request, ensure_ascii=False).encode(encoding)
        client.post(CHAT_PATH, content=body, headers={"Content-Type": "application/json"})
        proxy.stop()  # a stream is recorded just after its end
        (path,) = proxy.captures.iterdir()
        shutil.copyfile(path, ROOT / "captures" / name)
    print(f"captures/{name}")


def main() -> int:
    """Write a file for each script."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder / "scripted.gguf", SCRIPTS, default="semicolon-space", merged=MERGED)
        with Engine(folder / "scripted.gguf", folder / "llama-server.log") as engine:
            for script in WHOLE:
                record(engine, folder / script, f"{script}.mitm", chat_request(script))
            for script in STREAMED:
                name = f"stream-{script}"
                record(engine, folder / name, f"{name}.mitm", chat_request(script, stream=True))
            record(engine, folder / "latin-1", "request-latin-1.mitm", chat_request("plain", user="décor"), "latin-1")
            record(engine, folder / "unfolded", "request-unfolded.mitm", two_calls())
    return 0


if __name__ == "__main__":
    sys.exit(main())
