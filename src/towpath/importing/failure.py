"""The error of this room."""

from __future__ import annotations

from towpath.errors import TowpathError


class ThreadImportError(TowpathError):
    """A thread cannot be imported as it is, or from where it is."""

    code = "TP-511"
