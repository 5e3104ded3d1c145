"""`langgraph.utils`: a package, empty itself."""

from __future__ import annotations

__path__: list[str] = []
