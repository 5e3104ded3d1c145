"""The version of this package, kept where the build backend can read it."""

from __future__ import annotations

__version__ = "0.1.0"
