"""Compiled graphs and their verbs."""

from towpath.pregel.main import Pregel

__all__ = ("Pregel",)
