#!/usr/bin/env python3
"""Sets up a virtual environment with the locked dependencies and runs a task in it.

usage: python3 scripts/dev.py run|test|demo|lint [ARGUMENT ...]

    run    start the proxy; further arguments go to `pegmend run`
    test   run all tests; further arguments go to pytest
    demo   show the fault and the repair on a real engine with a scripted model
    lint   check style and types

Needs nothing but Python 3.8 or later to start with, and finds a Python 3.12 or later for the environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
MINIMUM = (3, 12)
LOCKS = {
    "run": ROOT / "requirements" / "run.txt",
    "test": ROOT / "requirements" / "test.txt",  # holds all of run.txt
}
PROBE = "import sys, venv, ensurepip; sys.exit(sys.version_info < ({}, {}))".format(*MINIMUM)
NO_PYTHON = (
    "dev.py: pegmend needs Python 3.12 or later, and none was found that starts: install one from python.org, or with "
    "`uv python install 3.13` or `pyenv install 3.13`, and run this again."
)


def say(message: str) -> None:
    print(f"dev.py: {message}", flush=True)


def candidates():
    """Yield the interpreters that may be there, the likeliest first."""
    yield sys.executable
    names = ["python3.14", "python3.13", "python3.12", "python3", "python"]
    for name in names:
        found = shutil.which(name)
        if found:
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    # Shims of pyenv fail where no version is chosen: look at the versions themselves.
    for version in sorted(pyenv.glob("3.*"), key=version_key, reverse=True):
        yield str(version / "bin" / "python3")
        yield str(version / "python.exe")
    if os.name == "nt" and shutil.which("py"):
        for minor in ("3.14", "3.13", "3.12"):
            yield from output_of(["py", "-" + minor, "-c", "import sys; print(sys.executable)"])
    if shutil.which("uv"):
        yield from output_of(["uv", "python", "find", ">=3.12"])


def version_key(path: Path):
    return [int(part) if part.isdigit() else -1 for part in path.name.split(".")]


def output_of(command):
    """Return the line that a command prints, in a list; an empty one where it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    line = done.stdout.decode(errors="replace").strip()
    return [line] if done.returncode == 0 and line else []


def starts(python: str) -> bool:
    """Whether an interpreter really starts, is new enough and can make an environment."""
    try:
        done = subprocess.run(
            [python, "-c", PROBE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def make_environment() -> None:
    python = next((candidate for candidate in candidates() if starts(candidate)), None)
    shutil.rmtree(VENV, ignore_errors=True)
    if python is not None:
        say("making .venv with {}".format(python))
        subprocess.run([python, "-m", "venv", str(VENV)], check=True)
    elif shutil.which("uv"):
        say("making .venv with uv, which brings a Python")
        subprocess.run(["uv", "venv", "--seed", "--python", ">=3.12", str(VENV)], check=True)
    else:
        sys.exit(NO_PYTHON)


def fingerprint(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()


def set_up(what: str) -> None:
    """Make the environment and install what a task needs, unless that was done before."""
    if not starts(str(PYTHON)):
        make_environment()
    stamps = {name: VENV / "{}-installed".format(name) for name in LOCKS}
    wanted = fingerprint(LOCKS[what])
    if stamps[what].is_file() and stamps[what].read_text() == wanted:
        return
    say("installing {}".format(LOCKS[what].relative_to(ROOT).as_posix()))
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(LOCKS[what])], check=True)
    say("installing pegmend from this folder")
    subprocess.run([*pip, "--no-build-isolation", "--editable", str(ROOT)], check=True)
    if what == "test" and shutil.which("npm"):
        say("installing tests/node/package-lock.json")
        npm = [shutil.which("npm"), "ci", "--silent", "--no-audit", "--no-fund"]
        subprocess.run(npm, check=True, cwd=str(ROOT / "tests" / "node"))
    stamps[what].write_text(wanted)


def run(*command: str) -> int:
    if os.name == "posix":
        # One process, so that whoever ends this one ends the task.
        os.chdir(str(ROOT))
        os.execv(command[0], list(command))  # noqa: S606
    try:
        return subprocess.call(command, cwd=str(ROOT))
    except KeyboardInterrupt:
        return 130


def lint() -> int:
    tasks = [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
    ]
    return max(subprocess.call([str(PYTHON), "-m", *task], cwd=str(ROOT)) for task in tasks)


def main(arguments: list) -> int:
    task, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if task not in ("run", "test", "demo", "lint"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        set_up("run" if task == "run" else "test")
    except subprocess.CalledProcessError as error:
        say("{} failed with exit status {}; the lines above say why.".format(error.cmd[0], error.returncode))
        return 1
    if task == "run":
        return run(str(PYTHON), "-m", "pegmend", "run", *rest)
    if task == "test":
        return run(str(PYTHON), "-m", "pytest", *rest)
    if task == "demo":
        return run(str(PYTHON), str(ROOT / "scripts" / "demo.py"), *rest)
    return lint()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
