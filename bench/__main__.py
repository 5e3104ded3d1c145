"""Measure, and print a table: `python -m bench [--quick] [--json FILE]`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from bench import adapters, measure, report, workloads


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument(
        "--only",
        metavar="WORDS",
        help="workloads whose name has one of these, by comma",
    )
    parser.add_argument(
        "--with",
        dest="names",
        metavar="NAMES",
        default=",".join(adapters.NAMES),
        help="libraries to measure, by comma (%(default)s)",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, and show it line by line."""
    given = parse(arguments)
    chosen = workloads.quick() if given.quick else workloads.full()
    if given.only:
        words = given.only.split(",")
        chosen = [work for work in chosen if any(word in work.name for word in words)]
    found, missing = adapters.load(tuple(given.names.split(",")))
    names = [each.name for each in found]
    print(report.versions(found))
    if missing:
        print("not measured:", "; ".join(missing))
    print(report.header(names, names[0]))
    effort = measure.QUICK if given.quick else measure.FULL
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for result in measure.measure(chosen, found, effort):
            results.append(result)
            print(report.row(result, names, names[0]), flush=True)
    if given.json:
        report.save(given.json, found, results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
