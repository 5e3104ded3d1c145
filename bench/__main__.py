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
from bench.adapters import PEER, Adapter, present
from bench.clock import FULL, QUICK, Effort, measure
from bench.workloads import WORKLOADS, Workload, select


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        for workload in WORKLOADS:
            print(f"{workload.name:18}{workload.title}")
        return 0
    try:
        workloads = select(options.only)
    except LookupError as error:
        print(f"bench: {error.args[0]}", file=sys.stderr)
        return 2
    # A tracer in the peer's dependencies would be measured with it.
    os.environ["LANGSMITH_TRACING"] = "false"
    os.environ["LANGCHAIN_TRACING_V2"] = "false"
    return _bench(workloads, QUICK if options.quick else FULL, options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("bench", description="Measure beside the peer.")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures here")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="name or pattern"
    )
    parser.add_argument("--list", action="store_true", help="list the workloads")
    return parser


def _bench(workloads: Sequence[Workload], effort: Effort, file: Path | None) -> int:
    adapters = present()
    if not any(adapter.name == PEER for adapter in adapters):
        print(f"bench: {PEER} is not installed, nothing to compare", file=sys.stderr)
    facts = report.machine(adapters)
    print(report.head(facts), flush=True)
    rows = [row for each in workloads if (row := _row(each, adapters, effort))]
    print(report.foot(rows))
    if file is not None:
        text = json.dumps(report.document(facts, rows), indent=2)
        file.write_text(text + "\n", "utf-8")
    return 0 if len(rows) == len(workloads) else 1


def _row(
    workload: Workload, adapters: Sequence[Adapter], effort: Effort
) -> report.Row | None:
    """Measure and print one workload; a failure is told and costs only its row."""
    try:
        row = report.Row(workload, measure(workload, adapters, effort))
    except Exception:
        print(f"{workload.name:17} failed", flush=True)
        traceback.print_exc()
        return None
    print(report.line(row), flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
