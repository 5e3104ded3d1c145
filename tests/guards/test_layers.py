"""Imports point down, make no circle, and keep the pure rooms pure."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "towpath"
IMPURE = {
    *("asyncio", "concurrent", "multiprocessing", "os", "random", "secrets"),
    *("socket", "sqlite3", "subprocess", "threading", "time", "uuid"),
}


@cache
def imported(path: Path) -> frozenset[str]:
    """Name every absolute import of a file, wherever in the file it stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph() -> dict[str, set[str]]:
    paths = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = imported(path)
        whole = {name if name in paths else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in whole if name in paths} - {module}
    return graph


def test_no_module_imports_itself_in_a_circle():
    """Imports under `TYPE_CHECKING` and inside functions count."""
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("room", ["step", "kernel"])
def test_pure_rooms_have_no_clock_thread_loop_or_storage(room):
    for path in sorted((PACKAGE / room).rglob("*.py")):
        tops = {name.partition(".")[0] for name in imported(path)}
        assert set() == tops & IMPURE, path.name


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        # Handlers derive from a class of langchain_core where it is installed.
        (
            "langchain_core",
            {"callbacks", "compat", "graph", "integrations", "prebuilt", "testing"},
        ),
        ("ormsgpack", {"checkpoint"}),
        ("cryptography", {"checkpoint"}),
        ("zstandard", {"checkpoint"}),
        # Their values are stored, but nobody needs them for it.
        ("numpy", {"store"}),  # compares vectors, where it is there
        ("pandas", set()),
        ("sqlite_vec", {"store"}),
        ("click", {"cli"}),
        ("rich", {"cli"}),
        ("ray", {"call", "integrations"}),
        ("opentelemetry", {"integrations"}),
        ("psycopg", {"checkpoint", "store", "testing"}),
        ("redis", {"cache", "testing"}),
    ],
)
def test_a_library_is_known_only_to_the_rooms_that_own_it(library, rooms):
    users = {
        path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for path in PACKAGE.rglob("*.py")
        if any(name.partition(".")[0] == library for name in imported(path))
    }
    assert set() == users - rooms


@pytest.mark.slow
def test_the_contracts_on_layers_hold():
    pytest.importorskip("importlinter")
    call = "import sys; from importlinter.cli import lint_imports as check"
    done = subprocess.run(
        [sys.executable, "-c", f"{call}; sys.exit(check(no_cache=True))"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
