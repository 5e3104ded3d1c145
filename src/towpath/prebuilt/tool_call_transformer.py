"""`ToolCallTransformer`, declared only.

Agents of other packages name it when they are imported. Event streams of version
3, in which it would tell of the calls of tools, are not there yet.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ToolCallTransformer:
    """Would follow the calls of tools in an event stream; nothing runs it yet."""

    before_builtins: ClassVar[bool] = False
    required_stream_modes: ClassVar[tuple[str, ...]] = ("tools",)
    requires_async: ClassVar[bool] = False
    supports_sync: ClassVar[bool] = False

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        self.scope = scope

    def init(self) -> dict[str, Any]:
        """Return the projections by name: none."""
        return {}
