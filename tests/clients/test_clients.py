"""Real clients, unmodified: what they show on Towpath is what they show on the peer.

Each program runs twice in interpreters of its own, as it is and under the
hook, and must print the same. They are in the extra `clients`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
CLIENTS = (
    "agent",
    "deep",
    "deeper",
    "events",
    "extract",
    "memory",
    "middleware",
    "supervisor",
    "swarm",
)
THEIRS = {
    "react": ["langgraph.prebuilt"],
    "savers": ["langgraph.checkpoint.sqlite", "langgraph.checkpoint.postgres"],
}
KIT = "langgraph.checkpoint.conformance"

pytestmark = [
    pytest.mark.differential,
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("deepagents") is None,
        reason="the clients are not installed: pip install -e '.[clients]'",
    ),
]


def run(program: str, *args: str, hook: list[str] | None = None, **env: str) -> str:
    """Run a program, under the hook or not, and return what it prints."""
    start = [] if hook is None else ["-m", "towpath.compat", *hook]
    done = subprocess.run(
        [sys.executable, *start, str(PROGRAMS / f"{program}.py"), *args],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONHASHSEED": "0",
            "LANGSMITH_TRACING": "false",
            **env,
        },
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, done.stderr + done.stdout
    return done.stdout


def observed(text: str) -> list[object]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("program", CLIENTS)
def test_a_client_sees_what_it_sees_on_the_peer(program):
    expected = observed(run(program))
    assert expected
    assert expected == observed(run(program, hook=[]))


def kept(modules: list[str]) -> list[str]:
    return [word for module in modules for word in ("--theirs", module)]


def test_the_peer_s_own_prebuilt_agents_run_on_our_engine():
    expected = observed(run("react"))
    assert expected == observed(run("react", hook=kept(THEIRS["react"])))


def test_the_peer_s_own_savers_serve_our_engine(tmp_path, postgres_server):
    seen = []
    for name, hook in (("peer", None), ("towpath", kept(THEIRS["savers"]))):
        dsn = postgres_server.new_schema()
        text = run("savers", str(tmp_path / name), hook=hook, DATABASE_URL=dsn)
        postgres_server.drop(dsn)
        seen.append(observed(text))
    assert seen[0] == seen[1]


def test_our_savers_pass_the_peer_s_conformance_kit(postgres):
    shown = run("conformance", hook=[], DATABASE_URL=postgres)
    assert 4 == shown.count("Result: FULL")


@pytest.mark.parametrize("package", ["langchain", "deepagents", KIT])
def test_the_check_finds_all_that_a_client_uses_covered(package):
    [folder] = find_spec(package).submodule_search_locations
    done = subprocess.run(
        [sys.executable, "-m", "towpath.compat", "--check", folder],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
