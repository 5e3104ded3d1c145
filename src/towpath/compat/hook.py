"""The import hook: which module stands behind a name of the peer's.

Our module is given out as it is, under a second name in `sys.modules`. There
is no list of modules: `langgraph.X` is `towpath.X` wherever that exists. What
exists under the peer's name only (its private modules that others import) is
in the package `peer`, in a file named by the path without its dots and
leading underscores: `langgraph._internal._config` is `peer/internal_config.py`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Final

from towpath.compat.foreign import ROOT, find_foreign
from towpath.errors import TowpathError, names
from towpath.semantics import LANGGRAPH, set_default

OURS: Final = "towpath"
PEER: Final = "towpath.compat.peer"
TURN: Final = RLock()
"""Threads load our modules one after the other. Packages import their own
modules, and two threads that came from different ends would meet halfway."""


class ImportOrderError(TowpathError, ImportError):
    """Something of `langgraph` was imported before `install()`."""

    code = "TP-630"


class Finder(MetaPathFinder):
    """Finds what `langgraph...` means; `theirs` stays with its distribution."""

    def __init__(self) -> None:
        self.theirs: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        del target
        if fullname == ROOT:
            return ModuleSpec(ROOT, Namespace(), is_package=True)
        if not fullname.startswith(f"{ROOT}."):
            return None
        home = None if self.is_theirs(fullname) else home_of(fullname)
        if home is not None:
            return ModuleSpec(fullname, Alias(home))
        return find_foreign(fullname, path, self)

    def is_theirs(self, name: str) -> bool:
        """Whether a module was asked to stay with another distribution."""
        return any(name == one or name.startswith(f"{one}.") for one in self.theirs)


class Return(MetaPathFinder):
    """Finds, last of all, a foreign module below one of ours.

    `from langgraph.checkpoint import redis` makes Python look for
    `towpath.checkpoint.redis`, because that is how the package is called.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        del path, target
        if not fullname.startswith(f"{OURS}."):
            return None
        name = ROOT + fullname.removeprefix(OURS)
        if find_foreign(name, None, FINDER) is None:
            return None
        return ModuleSpec(fullname, Alias(name))


class Alias(Loader):
    """Gives out a module that has another name, unchanged."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec
        with TURN:
            module = import_module(self.home)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the alias's spec there; reloading, pickling
        # and resources need the module's own.
        module.__spec__ = self.spec


class Namespace(Loader):
    """Makes the root, which is nobody's and has nothing in it."""

    def create_module(self, spec: ModuleSpec) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        # Nothing can be found past the hook.
        module.__path__ = []


FINDER: Final = Finder()
RETURN: Final = Return()


@cache
def home_of(name: str) -> str | None:
    """The module of ours that stands behind a name of the peer's, if any."""
    parts = name.split(".")[1:]
    bare = [part.lstrip("_") for part in parts]
    homes = [f"{PEER}.{'_'.join(bare)}", ".".join((OURS, *parts))]
    if bare != parts:
        homes.append(".".join((OURS, *bare)))
    return next((home for home in homes if exists(home)), None)


def exists(module: str) -> bool:
    """Whether we have a module of that name; it need not be possible to load it."""
    return spec_of(module) is not None


@cache
def spec_of(module: str) -> ModuleSpec | None:
    """Find a module of ours without importing anything.

    Only files are looked for: `importlib.util.find_spec` would import the
    packages around it, which may need an extra, and come back to the hook.
    """
    parent = module.rpartition(".")[0]
    if not parent:
        return sys.modules[OURS].__spec__
    around = spec_of(parent)
    if around is None or around.submodule_search_locations is None:
        return None
    return PathFinder.find_spec(module, around.submodule_search_locations)


def install(*, theirs: Iterable[str] = ()) -> None:
    """Let `import langgraph...` give Towpath from now on.

    `theirs` names modules that stay with the distribution they come from,
    where Towpath has its own: `"langgraph.checkpoint.sqlite"` to go on with a
    database that the peer's saver wrote. Graphs compiled from now on have the
    semantics `LANGGRAPH`, unless `compile(semantics=...)` says otherwise.
    Calling it again adds to `theirs`.

    Raises:
        ImportOrderError: something of `langgraph` was imported before (TP-630).
    """
    wanted = set(theirs)
    if not installed():
        refuse(loaded(ROOT))
        sys.meta_path.insert(0, FINDER)
        sys.meta_path.append(RETURN)
        set_default(LANGGRAPH)
        # What a program says of the peer's loggers goes for ours.
        logging.getLogger(OURS).parent = logging.getLogger(ROOT)
    refuse([name for one in wanted - FINDER.theirs for name in loaded(one)])
    FINDER.theirs |= wanted


def installed() -> bool:
    """Whether the hook is in place."""
    return FINDER in sys.meta_path


def loaded(name: str) -> list[str]:
    """The modules of that name, or below it, that were imported."""
    return sorted(one for one in sys.modules if f"{one}.".startswith(f"{name}."))


def refuse(early: Sequence[str]) -> None:
    if not early:
        return
    shown = names(early[:3]) + (f" and {len(early) - 3} more" if early[3:] else "")
    raise ImportOrderError(
        f"{shown} came before towpath.compat.install(), so this program would run "
        "on two engines",
        hint="call install() before anything that imports langgraph, langchain "
        "included; or start the program with `python -m towpath.compat`",
    )
