"""Modules that exist under the peer's name only.

Mostly private ones that other packages import all the same. A file is named by
the path it stands for, without dots and leading underscores.
"""
