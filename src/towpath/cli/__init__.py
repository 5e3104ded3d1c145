"""The command line: run, resume and inspect graphs from a terminal or a script.

`main` is the `towpath` program. It needs the extra `towpath[cli]`, which is
imported only here, so that `import towpath` stays free of it.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the `towpath` program."""
    try:
        import click
        import rich
    except ImportError as missing:
        print(  # noqa: T201
            f"towpath: the command line needs {missing.name}\n"
            "  hint: pip install 'towpath[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from towpath.cli.app import program

    program(prog_name="towpath")
