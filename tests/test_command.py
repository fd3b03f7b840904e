"""Starting it: the installed command, the bare script, options and their messages."""

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine
from tests.engine.proxy import ADDON, ROOT, Proxy, mitmdump
from tests.engine.server import free_port

REPAIRED = "repaired; evidence=replay; calls=2"


def run_command(executable: str, engine: Engine, folder: Path) -> Proxy:
    regular, reverse = free_port(), free_port()
    command = [
        *(executable, "run", "--port", str(regular), "--reverse-port", str(reverse)),
        *("--upstream", f"{engine.origin}/engines/v1"),
    ]
    return Proxy(
        engine.origin,
        folder,
        with_addon=False,
        command=command,
        regular_port=regular,
        reverse_port=reverse,
        options=[f"pegmend_capture_dir={folder}/captures"],
    )


def assert_both_ways_repair(proxy: Proxy, engine: Engine) -> None:
    with proxy.client() as client:
        assert client.post(CHAT_PATH, json=chat_request("newline")).headers["x-pegmend"] == REPAIRED
    with proxy.client(reverse=False) as client:
        for origin in (engine.origin, engine.origin.replace("127.0.0.1", "localhost")):
            response = client.post(f"{origin}{CHAT_PATH}", json=chat_request("newline"))
            assert response.headers["x-pegmend"] == REPAIRED


def test_pegmend_run(engine: Engine, tmp_path: Path) -> None:
    with run_command(f"{sysconfig.get_path('scripts')}/pegmend", engine, tmp_path) as proxy:
        assert_both_ways_repair(proxy, engine)
        shown = proxy.log_text()
    assert f"base URL  http://127.0.0.1:{proxy.reverse_port}/engines/v1" in shown
    assert f"HTTP_PROXY=http://127.0.0.1:{proxy.regular_port}" in shown
    assert "where other machines can reach it" not in shown


def test_a_fresh_environment_needs_only_the_locked_dependencies(engine: Engine, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    scripts = tmp_path / "venv" / "bin"
    pip = [str(scripts / "pip"), "--disable-pip-version-check", "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements" / "run.txt")], check=True)
    regular, reverse = free_port(), free_port()
    script = [
        *(str(scripts / "mitmdump"), "-s", str(ADDON)),
        *("--mode", f"regular@127.0.0.1:{regular}", "--mode", f"reverse:{engine.origin}@127.0.0.1:{reverse}"),
    ]
    with Proxy(engine.origin, tmp_path / "1", command=script, regular_port=regular, reverse_port=reverse) as proxy:
        assert_both_ways_repair(proxy, engine)
    subprocess.run([*pip, "--no-build-isolation", str(ROOT)], check=True, cwd=tmp_path)
    with run_command(str(scripts / "pegmend"), engine, tmp_path / "2") as proxy:
        assert_both_ways_repair(proxy, engine)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("pegmend_upstreams=http://x", "'http://x' is not an upstream: give HOST:PORT, for instance localhost:12434"),
        ("pegmend_upstreams=x:99999", "'x:99999' is not an upstream"),
        ("pegmend_replay_timeout_ms=0", "pegmend_replay_timeout_ms must be greater than 0, not 0"),
        ("pegmend_capture_max_mb=-1", "pegmend_capture_max_mb must be greater than 0, not -1"),
        ("pegmend_log=file:~nobody-of-that-name/x", "pegmend_log: '~nobody-of-that-name/x'"),
        ("pegmend_capture_dir=~nobody-of-that-name/x", "pegmend_capture_dir: '~nobody-of-that-name/x'"),
        ("pegmend_capture=some", "pegmend_capture is 'some': give one of all, repaired, off."),
    ],
)
def test_a_wrong_option_ends_the_start_with_a_clear_message(tmp_path: Path, setting: str, message: str) -> None:
    command = [mitmdump(), "-s", str(ADDON), "--set", setting, "--set", f"confdir={tmp_path}"]
    ended = subprocess.run([*command, "-p", str(free_port())], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert message in ended.stdout + ended.stderr


def test_an_unknown_option_is_told(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy(options=["pegmend_replya=true"])
    proxy.stop()
    assert "pegmend: there is no option pegmend_replya; it has no effect." in proxy.log_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_a_listener_beyond_loopback_is_told(tmp_path: Path, host: str) -> None:
    port, reverse = free_port(), free_port()
    mode = f"regular@{host}:{port}" if host else f"regular@{port}"
    command = [mitmdump(), "-s", str(ADDON), "--mode", mode, "--mode", f"regular@127.0.0.1:{reverse}"]
    with Proxy("http://127.0.0.1:9", tmp_path, command=command, regular_port=port, reverse_port=reverse) as proxy:
        pass
    assert f"port {port}, where other machines can reach it" in proxy.log_text()
    assert f"port {reverse}, where" not in proxy.log_text()


@pytest.mark.parametrize("url", ["localhost:12434", "ftp://x", "http://", "http://x:port"])
def test_a_wrong_upstream_is_told(url: str) -> None:
    command = [sys.executable, "-m", "pegmend", "run", "--upstream", url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert url in ended.stderr


def test_dev_py_is_one_process_that_can_be_ended(engine: Engine, tmp_path: Path) -> None:
    regular, reverse = free_port(), free_port()
    command = [sys.executable, str(ROOT / "scripts" / "dev.py"), "run", "--upstream", engine.origin]
    command += ["--port", str(regular), "--reverse-port", str(reverse)]
    options = [f"pegmend_capture_dir={tmp_path}/captures"]
    settings: dict[str, Any] = {"command": command, "with_addon": False, "options": options}
    for _ in range(2):  # the ports are free again
        with Proxy(engine.origin, tmp_path, regular_port=regular, reverse_port=reverse, **settings) as proxy:
            assert_both_ways_repair(proxy, engine)
