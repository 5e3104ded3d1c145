"""`langgraph._internal`: a package of private modules, empty itself."""

from __future__ import annotations

__path__: list[str] = []
