"""A program of the user's, run as `__main__` under the hook.

It is as if `python app.py` had been called: `sys.argv`, `sys.path` and
`__main__` are the program's. Processes that it starts with `multiprocessing`
import its main module again; the spec put there leads them to
`towpath.compat.worker`, which installs the hook in them first.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from towpath.compat.hook import FINDER

WORKER: Final = "towpath.compat.worker"
ENVIRONMENT: Final = "TOWPATH_COMPAT"
"""Tells worker processes what the program is."""


class MainSpec(ModuleSpec):
    """What worker processes find the main module by."""

    package = ""

    @property
    def parent(self) -> str:
        return self.package


def run_file(path: str, args: Sequence[str]) -> None:
    """Run a file, or a folder or archive that has a `__main__`."""
    sys.argv = [path, *args]
    if not Path(path).is_file() or path.endswith((".zip", ".pyz")):
        runpy.run_path(path, run_name="__main__")
        return
    sys.path[0] = str(Path(path).resolve().parent)
    announce("file", str(Path(path).resolve()))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    run_main(code, path, "")


def run_module(name: str, args: Sequence[str]) -> None:
    """Run a module, or a package that has a `__main__`, by its name."""
    sys.argv = ["-m", *args]
    spec = find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = find_spec(f"{name}.__main__")
    code = None if spec is None else code_of(spec)
    if spec is None or code is None:
        sys.exit(f"No module named {name}, or nothing in it that could be run")
    path = spec.origin or name
    sys.argv[0] = path
    announce("module", spec.name)
    run_main(code, path, spec.parent or "")


def code_of(spec: ModuleSpec) -> CodeType | None:
    """The code of a module, without importing it."""
    if not isinstance(spec.loader, InspectLoader):
        return None
    return spec.loader.get_code(spec.name)


def announce(kind: str, what: str) -> None:
    """Leave word for processes that the program starts."""
    told = {kind: what, "theirs": sorted(FINDER.theirs)}
    os.environ[ENVIRONMENT] = json.dumps(told)


def run_main(code: CodeType, path: str, package: str) -> None:
    """Run code as the main module, and leave that there."""
    main = ModuleType("__main__")
    spec = MainSpec(WORKER, None, origin=path)
    spec.package = package
    names: dict[str, Any] = main.__dict__
    names.update(
        __file__=path,
        __builtins__=__builtins__,
        __package__=package or None,
        __spec__=spec,
        __cached__=None,
    )
    sys.modules["__main__"] = main
    exec(code, names)  # noqa: S102 - the program that was asked for
