"""Keeping memories beyond one thread."""
