"""What other distributions put under the name `langgraph`.

`langgraph`, `langgraph.checkpoint`, `.store` and `.cache` are namespaces that
several distributions share: prebuilt agents, savers, stores. Once those names
are ours, Python's own search no longer finds the others' parts, so they are
looked for here, also below a module that we have and another distribution has
too: what is missing from ours is taken from theirs. The files of the
distributions that Towpath replaces are left out: two engines in one program
would not know each other's classes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

ROOT: Final = "langgraph"
REPLACED: Final = ("langgraph", "langgraph-checkpoint")
"""The distributions whose place Towpath takes."""


def find_foreign(
    name: str, path: Sequence[str] | None, passed: object
) -> ModuleSpec | None:
    """Find a module of another distribution.

    `path` is that of its parent, if that is loaded; `passed` is the finder
    that asks, which is not asked itself.
    """
    parent = name.rpartition(".")[0]
    if path is None or is_ours(parent):
        path = list(portions(parent))
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is passed or find is None:
            continue
        spec: ModuleSpec | None = find(name, path)
        if spec is not None and not is_replaced(spec):
            return spec
    return None


def is_ours(name: str) -> bool:
    """Whether a loaded module of the peer's name is one of ours."""
    module = sys.modules.get(name)
    return name == ROOT or (module is not None and module.__name__ != name)


def portions(name: str) -> Iterator[str]:
    """The folders of a shared name, in the order of `sys.path`."""
    for entry in sys.path:
        folder = Path(entry or Path.cwd()).joinpath(*name.split("."))
        if folder.is_dir():
            yield str(folder)


def is_replaced(spec: ModuleSpec) -> bool:
    """Whether a module belongs to a distribution that Towpath replaces."""
    if spec.origin is not None and spec.has_location:
        return os.path.realpath(spec.origin) in replaced_files()
    folders = [os.path.realpath(one) for one in spec.submodule_search_locations or ()]
    return any(
        file.startswith(folder + os.sep)
        for folder in folders
        for file in replaced_files()
    )


@cache
def replaced_files() -> frozenset[str]:
    """The files of the replaced distributions, if they are installed."""
    found: set[str] = set()
    for name in REPLACED:
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        found.update(
            os.path.realpath(str(file.locate()))
            for file in files
            if file.suffix in (".py", ".so", ".pyd")
        )
    return frozenset(found)
