"""Print what is stored: threads, a state, a history."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from towpath.cli.difference import Change
from towpath.cli.output import emit
from towpath.cli.plain import cut, to_json, to_plain
from towpath.cli.storage import Thread, next_nodes, open_questions
from towpath.cli.view import question_fields, question_text
from towpath.importing import Imported


def show_threads(threads: Sequence[Thread]) -> None:
    """Print a table of threads."""
    now = datetime.now(UTC)
    rows = (
        (
            one.id,
            one.status,
            age(one.changed, now),
            size(one.bytes),
            one.checkpoints,
            one.step,
            cut(", ".join(one.waiting_for).replace("\n", " "), width=60),
        )
        for one in threads
    )
    names = ("thread", "status", "age", "size", "checkpoints", "step", "waiting for")
    print_table(names, rows)


AGES = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def age(stamp: str | None, now: datetime) -> str:
    """Write how long ago a moment was, in its largest unit: `3h`, `12d`."""
    if stamp is None:
        return ""
    try:
        spent = int((now - datetime.fromisoformat(stamp)).total_seconds())
    except (ValueError, TypeError):  # another program's, or without a zone
        return stamp
    return next((f"{spent // s}{unit}" for unit, s in AGES if spent >= s), "0s")


def size(count: float | None) -> str:
    """Write a number of bytes in kB or MB where there are many."""
    if count is None:
        return ""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def show_differences(
    ends: Sequence[Mapping[str, Any]], changes: Iterable[Change]
) -> None:
    """Print what changed between two states, a line for each key."""
    names = [f"{end['checkpoint']} (step {end['step']})" for end in ends]
    emit(f"from {names[0]}\nto   {names[1]}")
    lines = list(map(change_line, changes))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines or ["nothing changed"]:
        emit(line if width is None else cut(line, width=width))


def change_line(change: Change) -> str:
    """Write one change: `+` came, `-` went, `~` is another."""
    old, new = to_json(change.old), to_json(change.new)
    match change.kind:
        case "added":
            return f"+ {change.key}: {new}"
        case "removed":
            return f"- {change.key}: {old}"
        case "changed":
            return f"~ {change.key}: {old} -> {new}"
        case "grew":
            return f"+ {change.key}[{change.at}:]: {new}"
        case "spliced":
            return f"~ {change.key}[{change.at}:]: {old} -> {new}"


def show_imported(found: Sequence[Imported], *, dry_run: bool) -> None:
    """Print a table of imported threads, and what is to be known of them."""
    rows = [
        (one.thread_id, one.checkpoints, one.writes, one.questions) for one in found
    ]
    print_table(("thread", "checkpoints", "pending writes", "open questions"), rows)
    for one in found:
        if one.unbound:
            emit(
                f"thread {one.thread_id}: {len(one.unbound)} finished tasks of its "
                "paused step could not be told apart, and will run again"
            )
    count = sum(one.checkpoints for one in found)
    done = "would import" if dry_run else "imported"
    emit(f"{done} {count} checkpoints of {len(found)} threads")


def deleted(told: Mapping[str, int], verb: str) -> str:
    """Say how much of what went: `deleted 12 checkpoints of 3 threads, ...`."""
    words = (
        (f"checkpoints of {told['threads']} threads", told["checkpoints"]),
        ("pending writes", told["writes"]),
        ("values", told["cells"]),
        ("bytes", told["bytes"]),
        ("bytes given back", told.get("bytes_given_back", 0)),
    )
    counted = ", ".join(f"{count} {noun}" for noun, count in words if count)
    return f"{verb} {counted or 'nothing'}"


def show_history(fields: Iterable[dict[str, Any]]) -> None:
    """Print a table of checkpoints, the newest first."""
    rows = (
        (
            one["step"],
            one["source"],
            counted(one["next"]),
            one["created_at"],
            one["checkpoint"],
        )
        for one in fields
    )
    print_table(("step", "source", "next", "created", "checkpoint"), rows)


def counted(nodes: Iterable[str]) -> str:
    """Write `plan, measure x30`."""
    counts = Counter(nodes).items()
    return ", ".join(f"{node} x{n}" if n > 1 else node for node, n in counts)


def show_state(fields: dict[str, Any], questions: Sequence[Any]) -> None:
    """Print one state: where it stands, what it asks, what it holds."""
    step = f"step {fields['step']} ({fields['source']}), {fields['created_at']}"
    emit(f"checkpoint {fields['checkpoint']}, {step}")
    for task in fields.get("tasks", ()):
        state = task["error"] or ("asks" if task["interrupts"] else None)
        done = state or ("done" if task["result"] is not None else "to run")
        emit(f"task {task['name']}: {done}")
    for question in questions:
        emit(question_text(question))
    emit(to_json(fields["values"], indent=2))


def snapshot_fields(snapshot: Any) -> dict[str, Any]:
    """Return a snapshot of a graph's state as JSON."""
    return {
        **place_fields(snapshot.config, snapshot.metadata),
        "created_at": snapshot.created_at,
        "next": list(snapshot.next),
        "tasks": [task_fields(task) for task in snapshot.tasks],
        "interrupts": [question_fields(one) for one in snapshot.interrupts],
        "values": to_plain(snapshot.values),
    }


def stored_fields(saved: Any) -> dict[str, Any]:
    """Return a checkpoint as JSON, as far as it can be read without its graph."""
    values = saved.checkpoint["channel_values"]
    return {
        **place_fields(saved.config, saved.metadata),
        "created_at": saved.checkpoint["ts"],
        "next": next_nodes(saved),
        "interrupts": open_questions(saved),
        "values": {
            name: to_plain(value)
            for name, value in values.items()
            if not name.startswith(("__", "branch:", "join:"))
        },
    }


def place_fields(config: Any, metadata: Any) -> dict[str, Any]:
    """Say which checkpoint it is."""
    settings = config["configurable"]
    return {
        "thread": settings["thread_id"],
        "checkpoint": settings.get("checkpoint_id"),
        "step": (metadata or {}).get("step"),
        "source": (metadata or {}).get("source"),
    }


def task_fields(task: Any) -> dict[str, Any]:
    """Return a task of a snapshot as JSON."""
    return {
        "id": task.id,
        "name": task.name,
        "error": to_plain(task.error),
        "interrupts": [question_fields(one) for one in task.interrupts],
        "result": to_plain(task.result),
    }


def print_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for a terminal, or lines with tabs for a pipe."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    console = Console()
    if not console.is_terminal:
        for line in (names, *texts):
            emit("\t".join(line))
        return
    table = Table(*names, box=None, padding=(0, 2, 0, 0))
    for line in texts:
        table.add_row(*line)
    console.print(table, markup=False)
