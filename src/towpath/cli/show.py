"""Print what is stored: threads, a state, a history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from towpath.cli.output import emit
from towpath.cli.plain import to_json, to_plain
from towpath.cli.storage import Thread, next_nodes, open_questions
from towpath.cli.view import question_fields, question_text
from towpath.importing import Imported


def show_threads(threads: Sequence[Thread]) -> None:
    """Print a table of threads."""
    rows = (
        (
            one.id,
            one.status,
            one.checkpoints,
            one.step,
            one.changed,
            ", ".join(one.questions),
        )
        for one in threads
    )
    names = ("thread", "status", "checkpoints", "step", "changed", "open questions")
    print_table(names, rows)


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
