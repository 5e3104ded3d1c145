"""`python -m towpath.compat`: run a program on Towpath, or check one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from towpath.compat.check import check, report
from towpath.compat.hook import install
from towpath.compat.program import run_file, run_module


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m towpath.compat",
        description="Run a program written for langgraph on Towpath.",
    )
    found.add_argument(
        "--theirs",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that stays with its own distribution, such as "
        "langgraph.checkpoint.sqlite; may be repeated",
    )
    found.add_argument(
        "--check",
        action="append",
        type=Path,
        metavar="PATH",
        help="run nothing; tell what of langgraph a file or folder uses that "
        "Towpath does not cover. Exit code 1 if there is any, 2 if a file "
        "could not be read",
    )
    found.add_argument("--json", action="store_true", help="with --check: as JSON")
    found.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="a module and its arguments"
    )
    found.add_argument(
        "script", nargs=argparse.REMAINDER, help="a program and its arguments"
    )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    words = parser()
    given = words.parse_args(argv)
    if given.check:
        missing = [path for path in given.check if not path.exists()]
        if missing:
            words.error(f"no such file or folder: {missing[0]}")
        found = check(given.check, given.theirs)
        sys.stdout.write(report(found, as_json=given.json) + "\n")
        return 2 if found.unreadable else int(bool(found.uncovered))
    if not (given.module or given.script):
        words.error("a program, -m and a module, or --check and a path")
    if not given.module and not Path(given.script[0]).exists():
        words.error(f"no such file or folder: {given.script[0]}")
    install(theirs=given.theirs)
    if given.module:
        run_module(given.module[0], given.module[1:])
    else:
        run_file(given.script[0], given.script[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
