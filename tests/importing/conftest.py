"""Programs run beside the peer; without it there is nothing to compare with."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("langgraph") else ["test_*.py"]
