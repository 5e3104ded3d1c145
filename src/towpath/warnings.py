"""Warning categories.

The peer's deprecation categories keep their names, so that filters written
for it still match. `TowpathWarning` is ours: something the peer does in
silence and the `LANGGRAPH` preset keeps, but says.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Final

__all__ = (
    "CacheWarning",
    "LangGraphDeprecatedSinceV05",
    "LangGraphDeprecatedSinceV10",
    "LangGraphDeprecatedSinceV11",
    "LangGraphDeprecationWarning",
    "TowpathWarning",
    "warn_user",
)

STDLIB: Final = Path(warnings.__file__).parent
INNER: Final = (
    str(Path(__file__).parent),
    *(str(STDLIB / name) for name in ("asyncio", "concurrent", "threading", "context")),
)
"""Where the files begin whose lines are nobody's who could change something: this
package's, and what runs its tasks."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here, however deep this is.

    In a thread of a driver's there is none above: the warning is then the driver's.
    """
    frame = sys._getframe(1)  # noqa: SLF001 - the only way up
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INNER):
        frame = frame.f_back
    known = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    file, line = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, category, file, line, module, known)


class TowpathWarning(UserWarning):
    """A value, a jump or a question was lost, the way the peer loses it."""


class CacheWarning(RuntimeWarning):
    """A cache could not be used, or not all of it; the work was done anew."""


class LangGraphDeprecationWarning(DeprecationWarning):
    """A deprecated name or call, with the versions it left and goes away in."""

    message: str
    since: tuple[int, int]
    expected_removal: tuple[int, int]

    def __init__(
        self,
        message: str,
        *args: object,
        since: tuple[int, int],
        expected_removal: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message, *args)
        self.message = message.rstrip(".")
        self.since = since
        self.expected_removal = expected_removal or (since[0] + 1, 0)

    def __str__(self) -> str:
        since, removal = self.since, self.expected_removal
        return (
            f"{self.message}. Deprecated in LangGraph V{since[0]}.{since[1]} "
            f"to be removed in V{removal[0]}.{removal[1]}."
        )


class LangGraphDeprecatedSinceV05(LangGraphDeprecationWarning):
    """Deprecated since the peer's version 0.5."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args, since=(0, 5), expected_removal=(2, 0))


class LangGraphDeprecatedSinceV10(LangGraphDeprecationWarning):
    """Deprecated since the peer's version 1.0."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args, since=(1, 0), expected_removal=(2, 0))


class LangGraphDeprecatedSinceV11(LangGraphDeprecationWarning):
    """Deprecated since the peer's version 1.1."""

    def __init__(self, message: str, *args: object) -> None:
        super().__init__(message, *args, since=(1, 1), expected_removal=(3, 0))
