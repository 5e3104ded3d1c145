"""Programs written for `langgraph`, on Towpath, unchanged.

    python -m towpath.compat app.py

or, first thing in a program:

    import towpath.compat

    towpath.compat.install()

From then on `import langgraph.X` gives `towpath.X`: the same module object
under two names, so classes are the same wherever they come from, in
`isinstance` as in `except`. What other distributions put under `langgraph`
(savers, stores) is still theirs, and meets our base classes.

`python -m towpath.compat --check app/` tells beforehand what of a code base is
not covered.
"""

from __future__ import annotations

from towpath.compat.hook import ImportOrderError, install, installed

__all__ = ("ImportOrderError", "install", "installed")
