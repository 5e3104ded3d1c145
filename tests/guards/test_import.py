"""`import towpath` is cheap and brings nobody along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = """
import json, sys
before = set(sys.modules)
import towpath
loaded = set(sys.modules) - before
print(json.dumps(sorted({name.partition(".")[0] for name in loaded})))
"""
TIME = """
import sys, time
start = time.perf_counter()
import {modules}
print(time.perf_counter() - start)
"""
# A part of the standard library that a small program is ready to pay for; slow
# machines are slow at both.
YARDSTICK = "asyncio, http.client, sqlite3, unittest, xml.dom.minidom, logging.config"
SECONDS_MAX = 0.06


def python(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_import_loads_the_standard_library_only():
    loaded = json.loads(python(NAMES))
    assert {"towpath"} == set(loaded) - set(sys.stdlib_module_names)


@pytest.mark.parametrize("heavy", ["asyncio", "sqlite3", "unittest", "http", "logging"])
def test_import_leaves_heavy_modules_for_later(heavy):
    assert heavy not in json.loads(python(NAMES))


@pytest.mark.slow
def test_import_is_cheap():
    def best(modules: str, runs: int = 7) -> float:
        return min(float(python(TIME.format(modules=modules))) for _ in range(runs))

    best("towpath", runs=1)  # Byte code is compiled once per installation.
    spent = best("towpath")
    assert spent <= SECONDS_MAX or spent <= best(YARDSTICK), f"{spent * 1000:.0f} ms"
