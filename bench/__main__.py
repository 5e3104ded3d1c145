"""The command; `bench/__init__.py` tells how to read what it prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.adapters import Adapter, absent, present
from bench.clock import FULL, QUICK, Effort, measure
from bench.plot import ratios
from bench.workloads import WORKLOADS, Workload, select


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        for workload in WORKLOADS:
            print(f"{workload.name:18}{workload.title}")
        return 0
    try:
        workloads = select(options.only, quick=options.quick)
    except LookupError as error:
        print(f"bench: {error.args[0]}", file=sys.stderr)
        return 2
    # A tracer in the peer's dependencies would be measured with it.
    os.environ["LANGSMITH_TRACING"] = "false"
    os.environ["LANGCHAIN_TRACING_V2"] = "false"
    return _bench(workloads, QUICK if options.quick else FULL, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("bench", description="Measure beside the peer.")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures here")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw them here")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="name or pattern"
    )
    parser.add_argument("--list", action="store_true", help="list the workloads")
    return parser


def _bench(
    workloads: Sequence[Workload], effort: Effort, options: argparse.Namespace
) -> int:
    adapters = present()
    for package in absent():
        print(f"bench: {package} is not installed, and left out", file=sys.stderr)
    facts = report.machine(adapters)
    table = report.Table([adapter.name for adapter in adapters])
    print(report.head(facts), table.head(), sep="\n\n", flush=True)
    rows = [row for each in workloads if (row := _row(each, adapters, effort, table))]
    print(report.foot(rows))
    document = report.document(facts, rows)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    if options.svg is not None:
        options.svg.write_text(ratios(document), "utf-8")
    return 0 if len(rows) == len(workloads) else 1


def _row(
    workload: Workload,
    adapters: Sequence[Adapter],
    effort: Effort,
    table: report.Table,
) -> report.Row | None:
    """Measure and print one workload; a failure is told and costs only its row."""
    try:
        row = report.Row(workload, measure(workload, adapters, effort))
    except Exception:
        print(f"{workload.name:17} failed", flush=True)
        traceback.print_exc()
        return None
    print(table.line(row), flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
