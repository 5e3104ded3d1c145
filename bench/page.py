"""Print a page of the documentation from measured figures.

    python -m bench.page figures.json [growth.json] > docs/performance/figures.md

`make bench-docs` measures first. Pictures are expected beside the page, where
`--svg` and `--folder` put them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.adapters import OURS, PEER
from bench.goals import STREAM_MOST, bound, reason
from bench.growth import FLAT
from bench.report import amount, duration, times

Document = Mapping[str, Any]


def page(figures: Document, growth: Document | None = None) -> str:
    """Return the page; the arguments are what `--json` and `--folder` write."""
    parts = [*_head(figures["machine"]), *_times(figures), *_winners(figures)]
    for which, title in (("stored", "Bytes on disk"), ("held", "Bytes in memory")):
        parts += _bytes(figures, which, title)
    parts += _streams(figures)
    if growth is not None:
        parts += _growth(growth)
    return "\n".join(parts)


def _head(machine: Document) -> Iterator[str]:
    versions = ", ".join(f"{name} {one}" for name, one in machine["versions"].items())
    yield "# Figures"
    yield ""
    yield "Written by `make bench-docs`; [how they are measured](../performance.md)."
    yield ""
    yield f"{versions}; {machine['python']}, {machine['system']}, "
    yield f"{machine['cores']} cores of {machine['processor']}."
    yield ""
    yield "![How many times longer than Towpath](ratios.svg)"
    yield ""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, figures to the right."""
    yield "| " + " | ".join(titles) + " |"
    yield "|---" + "|--:" * (len(titles) - 1) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def _times(figures: Document) -> Iterator[str]:
    names = list(figures["machine"]["versions"])
    rows = [_row(entry, names) for entry in figures["workloads"]]
    yield "## Time per unit"
    yield ""
    yield "Medians: CPU time, or time on the wall where a disk is waited for. *Best* is"
    yield "the fastest of the other engines. ✓ and ✗: the goals of the row are reached"
    yield "or not. ◆: another library is faster, and below it says why."
    yield ""
    titles = ["work", "unit", *names, f"{PEER} / ours", "best / ours", ""]
    yield from table(titles, rows)


def _row(entry: Document, names: Sequence[str]) -> list[str]:
    clock, ratio = entry["clock"], entry["ratio"][entry["clock"]]
    middles = {
        name: each[clock]["median"] for name, each in entry["contestants"].items()
    }
    marks = {True: "✓", False: "✗", None: ""}[entry["reached"]]
    marks += " ◆" if entry["winner"] else ""
    return [
        entry["title"],
        f"{entry['unit']}, {clock}",
        *(duration(middles.get(name)) for name in names),
        times(ratio.get(PEER)),
        times(ratio.get(entry["best"])),
        marks,
    ]


def _winners(figures: Document) -> Iterator[str]:
    """Yield why others win, once for each winner and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in figures["workloads"]:
        if winner := entry["winner"]:
            why = reason(entry["name"], winner)
            found.setdefault((winner, why), []).append(entry["title"])
    yield "## Where another library is faster"
    yield ""
    for (winner, why), titles in found.items():
        yield f"* **{winner}**: {'; '.join(titles)}. {why}"
    if not found:
        yield "Nowhere in this run."
    yield ""


def _bytes(figures: Document, which: str, title: str) -> Iterator[str]:
    names = list(figures["machine"]["versions"])
    rows = []
    for entry in figures["workloads"]:
        sizes = {
            name: each[f"{which}_bytes"] for name, each in entry["contestants"].items()
        }
        if any(sizes.values()):
            most = bound(which, entry["name"], sizes.get("raw", 0))
            cells = [amount(sizes[name]) if sizes.get(name) else "-" for name in names]
            rows.append([entry["title"], *cells, amount(most) if most else ""])
    if rows:
        yield f"## {title}"
        yield ""
        yield from table(["work", *names, "goal"], rows)


def _streams(figures: Document) -> Iterator[str]:
    names = [OURS, PEER]
    rows = [
        [mode, *(times(ratios.get(name)) for name in names)]
        for mode, ratios in figures["streamed"].items()
    ]
    if rows:
        yield "## A streamed run over a plain one"
        yield ""
        yield f"The goal is {STREAM_MOST}x."
        yield ""
        yield from table(["mode", *names], rows)


def _growth(growth: Document) -> Iterator[str]:
    yield "## Growth"
    yield ""
    yield f"The last tenth over the first; flat is at most {FLAT}."
    yield ""
    lines = growth["lines"]
    rows = [
        [line["unit"], line["saver"], f"{line['points'][-1][0]:,}"]
        + [f"{line['slope']:.2f}", "" if line["slope"] <= FLAT else "grows"]
        for line in lines
    ]
    yield from table(["along", "saver", "up to", "slope", ""], rows)
    for axis in dict.fromkeys(line["axis"] for line in lines):
        yield f"![The cost of a step along {axis}](growth-{axis}.svg)"
    yield ""


def main(arguments: Sequence[str]) -> int:
    documents = [json.loads(Path(file).read_text("utf-8")) for file in arguments]
    sys.stdout.write(page(*documents))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
