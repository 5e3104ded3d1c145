"""Programs that run under the hook, each in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Programs:
    """Writes programs into a folder and runs them there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def python(self, *words: str, alone: bool = False) -> subprocess.CompletedProcess:
        """Run `python ...`; `alone` hides what is installed but not needed."""
        paths = [str(ROOT / "src"), str(self.folder / "site")]
        if alone:
            paths.append(str(self.needed()))
        return subprocess.run(
            [sys.executable, *(["-S"] if alone else []), *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )

    def printed(self, *words: str, alone: bool = False) -> str:
        done = self.python(*words, alone=alone)
        assert 0 == done.returncode, done.stderr
        return done.stdout.strip()

    def hooked(self, text: str, *words: str, alone: bool = False) -> str:
        """Run a program with `python -m towpath.compat`; return what it prints."""
        file = self.write("app.py", text)
        return self.printed("-m", "towpath.compat", *words, str(file), alone=alone)

    def needed(self) -> Path:
        """A folder with what Towpath itself needs, and nothing else."""
        import ormsgpack
        import typing_extensions

        folder = self.folder / "needed"
        if not folder.exists():
            folder.mkdir()
            package = Path(ormsgpack.__file__).parent
            (folder / package.name).symlink_to(package)
            module = Path(typing_extensions.__file__)
            (folder / module.name).symlink_to(module)
        return folder


@pytest.fixture
def programs(tmp_path) -> Programs:
    return Programs(tmp_path)
