"""Start an example as a user does, in a folder of its own, and kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TOWPATH_MODEL", "TOWPATH_DB")
"""What would make an example talk to a real model, or keep its threads elsewhere."""


def command(*words: object) -> list[str]:
    return [sys.executable, *map(str, words)]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    kept = {name: value for name, value in os.environ.items() if name not in KEYS}
    return {**kept, "PYTHONPATH": path}


def run(
    folder: Path, *words: object, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        env=environment() | variables,
    )


def towpath(
    folder: Path, name: str, example: str, *words: object
) -> subprocess.CompletedProcess[str]:
    """Run a command of `towpath` on the graph of an example."""
    target = f"{EXAMPLES / example}.py:graph"
    return run(folder, "-m", "towpath.cli", name, target, *words)


def counted(log: Path) -> Counter[str]:
    """Count the lines of a log, each of which names something that has begun."""
    return Counter(log.read_text().splitlines() if log.exists() else [])


def stop_after(
    folder: Path, log: Path, count: int, *words: object, by: int = signal.SIGKILL
) -> tuple[int, str]:
    """Start a program and signal it once the log has `count` lines.

    Returns its exit code and what it printed.
    """
    with TemporaryFile("w+") as printed:
        program = subprocess.Popen(
            command(*words),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=environment(),
        )
        deadline = time.monotonic() + 60
        while counted(log).total() < count and program.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        program.send_signal(by)
        program.wait(60)
        printed.seek(0)
        return program.returncode, printed.read()


def finished(db: Path, channel: str, name: str) -> set[str]:
    """Name what is on disk of a fan-out: the tasks that must not run again.

    `name` is a format of what each task wrote.
    """
    from towpath.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(db)) as saver:
        saved = next(iter(saver.list(None)), None)
        if saved is None:
            return set()
        written = [
            values
            for _, key, values in saved.pending_writes or ()
            if key == channel and isinstance(values, list)
        ]
        folded = saved.checkpoint["channel_values"].get(channel, [])
        return {name.format_map(one) for values in [folded, *written] for one in values}
