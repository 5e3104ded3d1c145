"""The version of the peer that Towpath speaks; others compare it."""

from __future__ import annotations

__all__ = ("__version__",)

__version__ = "1.2.24"
