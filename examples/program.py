"""What the examples share: a graph that runs in a terminal, on a durable thread.

A program starts its graph, or goes on with what its thread was doing when it was
stopped; shows what the nodes did; asks a person what the graph asks; and ends with
0 when the run is done, 3 when it waits for an answer, 1 when it failed, 2 when the
command line is wrong, and 130 when it was stopped with Ctrl-C. In all but the first
case it says how to go on.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from towpath import Command
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import PersistenceError
from towpath.types import Checkpointer

DATABASE = "towpath.db"
Lines: TypeAlias = Iterator[str]


class UsageError(Exception):
    """The command line asks for something that cannot be; nothing ran."""


@dataclass(frozen=True, slots=True)
class Program:
    """A graph, where it is found, and how to show what its nodes did.

    `show` is given the name of a node and what it wrote, and yields lines. `key` is
    the key of the input that tells one run from another.
    """

    file: str
    build: Callable[[Checkpointer], Any]
    show: Callable[[str, Any], Lines]
    key: str


def parser(summary: str, thread: str | None = None) -> argparse.ArgumentParser:
    """Return a parser with the options that every example has."""
    made = argparse.ArgumentParser(description=summary)
    option = made.add_argument
    option("--db", type=Path, default=Path(DATABASE), help="SQLite file of threads")
    known = f" (default: {thread})" if thread else ""
    option("--thread", default=thread, help=f"the same one goes on{known}")
    return made


def thread_of(program: str, what: str) -> str:
    """Name the thread of a run that was given no name: the same for the same work."""
    return f"{program}-{hashlib.sha256(os.fsencode(what)).hexdigest()[:6]}"


def whole_file(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, "utf-8")
    draft.replace(path)


def run(program: Program, values: Mapping[str, Any], args: argparse.Namespace) -> int:
    """Start the graph with `values`, or go on with its thread; return the exit code."""
    try:
        with opened(args.db) as saver:
            return follow(program, program.build(saver), values, args)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, EOFError):
        print("\nstopped; run the same again, or go on with:")
        print(f"  {resume_command(program.file, args)}")
        return 130
    except Exception as error:
        print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
        print("what was finished is kept; go on with:", file=sys.stderr)
        print(f"  {resume_command(program.file, args)}", file=sys.stderr)
        return 1


def opened(db: Path) -> SqliteSaver:
    """Open the file of threads."""
    try:
        saver = SqliteSaver.from_conn_string(str(db))
        saver.setup()
    except PersistenceError as error:
        raise UsageError(f"--db: {error}") from error
    return saver


def follow(
    program: Program, graph: Any, values: Mapping[str, Any], args: argparse.Namespace
) -> int:
    """Run to the end, asking on the way what the graph asks."""
    config = {"configurable": {"thread_id": args.thread}}
    before = graph.get_state(config)
    step: Any = values
    if before.next:
        if not is_same(before.values, values, program.key):
            raise UsageError(
                f"thread {args.thread} is not done with something else: "
                f"use another --thread, or go on with\n"
                f"  {resume_command(program.file, args)}"
            )
        print(f"going on with thread {args.thread}", flush=True)
        step = None
    if not before.interrupts:
        advance(program, graph, step, config)
    while questions := graph.get_state(config).interrupts:
        answers = [answer_to(one.value, one.response_schema, args) for one in questions]
        if None in answers:
            print("waiting for an answer; give it with:")
            print(f"  {resume_command(program.file, args)}")
            return 3
        told = {one.id: said for one, said in zip(questions, answers, strict=True)}
        advance(program, graph, Command(resume=told), config)
    return 0


def is_same(state: Mapping[str, Any], values: Mapping[str, Any], key: str) -> bool:
    """Tell whether a thread that is not done was started with these values."""
    held = state.get(key)
    if held is None:  # stopped before its first step was stored
        return True
    wanted = values[key]
    if key == "messages":
        held = [one.content for one in held if one.type == "human"][-len(wanted) :]
    same: bool = held == wanted
    return same


def advance(program: Program, graph: Any, step: Any, config: dict[str, Any]) -> None:
    """Run until the end or a question, showing what the nodes did."""
    how: dict[str, Any] = {
        "stream_mode": ["updates", "custom"],
        "subgraphs": True,
        # What a step did is on disk before the next one begins, not soon after.
        "durability": "sync",
    }
    with patience():
        for _path, mode, chunk in graph.stream(step, config, **how):
            for line in [chunk] if mode == "custom" else lines_of(program, chunk):
                print(line, flush=True)


def lines_of(program: Program, updates: Mapping[str, Any]) -> Lines:
    """Show what nodes did."""
    for node, update in updates.items():
        if not node.startswith("__"):
            yield from program.show(node, update)


@contextmanager
def patience() -> Iterator[None]:
    """Say what Ctrl-C does: a call of a model that is under way is paid for."""

    def stop(number: int, frame: Any) -> None:
        print("\nstopping when what is running is done; Ctrl-C again: at once")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def show_messages(_node: str, update: Any) -> Lines:
    """Tell what was said, and which tools were called."""
    for message in (update or {}).get("messages", ()):
        text = str(message.text).strip()
        if message.type == "tool":
            yield f"  {message.name}: {text}"
            continue
        if text:
            yield f"{message.name or message.type}: {text}"
        for call in getattr(message, "tool_calls", ()):
            given = ", ".join(f"{k}={v!r}" for k, v in call["args"].items())
            yield f"  {call['name']}({given})"


# ------------------------------------------------------------------- the questions


def answer_to(
    question: Mapping[str, Any], schema: Any, args: argparse.Namespace
) -> str | None:
    """Return the answer of the command line, or of a person; None: nobody is there."""
    choices: Sequence[str] = (schema or {}).get("enum", ())
    print(f"? {question['question']}")
    for key, value in question.items():
        if key != "question":
            print(f"  {key}: {value}")
    if (given := getattr(args, "answer", None)) is not None:
        return str(given)
    if not sys.stdin.isatty():
        return None
    while True:
        said = input(f"answer ({'/'.join(choices)}): ").strip()
        if not choices or said in choices:
            return said
        print(f"  one of {', '.join(choices)}")


def resume_command(file: str, args: argparse.Namespace) -> str:
    """Write the command that goes on with the thread."""
    words = ["resume", f"{os.path.relpath(file)}:graph", "--thread", args.thread]
    if str(args.db) != DATABASE:
        words += ["--db", str(args.db)]
    # Inside a virtual environment that is not active, the program has no short name.
    beside = [os.path.relpath(sys.executable), "-m", "towpath.cli"]
    return shlex.join([*(["towpath"] if shutil.which("towpath") else beside), *words])
