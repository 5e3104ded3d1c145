"""What servers for tests have in common."""

from __future__ import annotations


class NoServerError(Exception):
    """There is no server to test with, and the message says why."""
