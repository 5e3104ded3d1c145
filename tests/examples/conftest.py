"""The modules of the examples, imported as they import each other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.examples.running import EXAMPLES, KEYS


@pytest.fixture
def example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ModuleType]]:
    """Import an example, in a folder of its own and without a key for a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    yield importlib.import_module
    # Their names are too plain to be left to others.
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").parent == EXAMPLES:
            del sys.modules[name]
