"""Who provides a name of the peer's: Towpath, another package, or nobody."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Literal

from towpath.compat.foreign import ROOT, find_foreign
from towpath.compat.hook import Finder, home_of

By = Literal["towpath", "others", "extra", "nobody"]
ABSENT: Final = object()


class Cover:
    """Answers for dotted names; `theirs` as in `install`."""

    def __init__(self, theirs: Sequence[str] = ()) -> None:
        self.finder = Finder()
        self.finder.theirs.update(theirs)
        self.modules: dict[str, By] = {}

    def provider(self, name: str, keyword: str = "") -> By:
        """Who provides a module, a name in one, or a keyword of a function."""
        module, attributes = self.split(name)
        by = self.module_by(module)
        if by != "towpath" or not (attributes or keyword):
            return by
        if module == ROOT:
            return "nobody"
        try:
            value: Any = loaded(module)
            for attribute in attributes:
                value = taken(value, attribute)
        except ImportError:
            return "extra"
        if value is ABSENT or (keyword and not takes(value, keyword)):
            return "nobody"
        return "towpath"

    def split(self, name: str) -> tuple[str, list[str]]:
        """The longest module in a dotted name, and what comes after it."""
        parts = name.split(".")
        for end in range(len(parts), 1, -1):
            module = ".".join(parts[:end])
            if self.module_by(module) != "nobody":
                return module, parts[end:]
        # Nobody has the module: a name in the root can only be a module.
        return (ROOT, parts[1:]) if len(parts) > 1 else (ROOT, [])

    def is_module(self, name: str) -> bool:
        return name == ROOT or not self.split(name)[1]

    def is_within_modules(self, name: str) -> bool:
        """Whether only the last word of a name can be something in a module.

        `Command.PARENT` is an attribute of what was reported where it was
        imported.
        """
        return len(self.split(name)[1]) <= 1

    def module_by(self, name: str) -> By:
        """Who provides a module."""
        if name not in self.modules:
            self.modules[name] = self.look(name)
        return self.modules[name]

    def look(self, name: str) -> By:
        if name == ROOT:
            return "towpath"
        ours = None if self.finder.is_theirs(name) else home_of(name)
        if ours is not None:
            return "towpath"
        return "others" if find_foreign(name, None, self.finder) else "nobody"


def loaded(module: str) -> ModuleType:
    """Our module behind a name of the peer's."""
    home = home_of(module)
    assert home is not None
    return import_module(home)


def taken(value: Any, attribute: str) -> Any:
    """An attribute, or a sign that there is none."""
    if value is ABSENT:
        return ABSENT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names are there all the same
        return getattr(value, attribute, ABSENT)


def takes(function: Any, keyword: str) -> bool:
    """Whether something can be called with a keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return keyword in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
