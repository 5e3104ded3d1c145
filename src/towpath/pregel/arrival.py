"""What is to be done when another library is imported, now or later."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def on_import(module: str, act: Callable[[], object]) -> None:
    """Act once a module is there: at once, or when somebody imports it.

    Until then every import asks one more finder, which costs 0.1 us; the
    module itself is never imported for this.
    """
    if module in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, Watch(module, act))


class Watch(MetaPathFinder):
    """Waits for one module."""

    def __init__(self, module: str, act: Callable[[], object]) -> None:
        self.module = module
        self.act = act
        self.asking = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self.module or self.asking:
            return None
        self.asking = True  # so that the search passes by here
        try:
            spec = find_spec(fullname)
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = Announced(spec.loader, self)
        return spec

    def arrived(self) -> None:
        """Stop waiting, and act."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self.act()


class Announced(Loader):
    """Loads as another loader does, and says so."""

    def __init__(self, loader: Any, watch: Watch) -> None:
        self.loader = loader
        self.watch = watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        # Nobody who looks later finds anything but the module's own loader.
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.watch.arrived()
