"""Figures of durable storage in SQLite, beside the bare database.

All commits wait for the disk (`synchronous=FULL`). Bare commits insert what a
turn of the chat says, one row each, in the same round.
"""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from towpath import END, START, StateGraph
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.types import Durability

TURNS, CONVERSATIONS, ROUNDS = 1000, 1000, 3


class Chat(TypedDict):
    messages: Annotated[list[dict[str, str]], operator.add]
    turn: int
    turns: int


def said(turn: int) -> list[dict[str, str]]:
    """Return what one turn adds: 400 characters."""
    return [
        {"role": "user", "content": "x" * 100, "id": f"u{turn}"},
        {"role": "assistant", "content": "y" * 300, "id": f"a{turn}"},
    ]


def talk(state: Chat) -> dict[str, Any]:
    return {"messages": said(state["turn"]), "turn": state["turn"] + 1}


async def talk_async(state: Chat) -> dict[str, Any]:
    return talk(state)


def chat(node: Callable[..., Any], saver: Any) -> Any:
    builder = StateGraph(Chat)
    builder.add_node("talk", node)
    builder.add_edge(START, "talk")
    builder.add_conditional_edges(
        "talk",
        lambda state: "talk" if state["turn"] < state["turns"] else END,
        ["talk", END],
    )
    return builder.compile(checkpointer=saver)


def place(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 100_000}


def given(turns: int) -> dict[str, Any]:
    return {"messages": [], "turn": 0, "turns": turns}


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def bare(path: Path, commits: int) -> float:
    """Return the seconds that one bare commit takes."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE log (turn INTEGER PRIMARY KEY, said TEXT)")

    def store() -> None:
        for turn in range(commits):
            database.execute("INSERT INTO log VALUES (?, ?)", (turn, str(said(turn))))

    took = seconds(store) / commits
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return took


def turn(path: Path, durability: Durability) -> float:
    """Return the seconds that one turn takes of a chat of many."""
    with SqliteSaver(str(path)) as saver:
        graph = chat(talk, saver)
        graph.invoke(given(2), place("warm"), durability=durability)
        run = seconds(
            lambda: graph.invoke(given(TURNS), place("t"), durability=durability)
        )
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return run / TURNS


def long_chat(folder: Path) -> None:
    """One chat of many turns: a step beside a bare commit, and bytes on disk."""
    took: dict[Durability, list[float]] = {"sync": [], "async": []}
    raw = []
    for number in range(ROUNDS):
        raw.append(bare(folder / f"raw{number}.db", TURNS))
        for durability, ours in took.items():
            path = folder / f"{durability}{number}.db"
            ours.append(turn(path, durability))
    commit = median(raw) * 1e6
    for durability, ours in took.items():
        step = median(ours) * 1e6
        print(
            f"chat of {TURNS} turns, a step:      {step:7.0f} us with {durability!r},"
            f" bare {commit:.0f} us"
        )
    size, least = path.stat().st_size / 1e6, (folder / "raw0.db").stat().st_size / 1e6
    print(f"bytes on disk after it:      {size:7.2f} MB, bare {least:.2f} MB")


def crowd(folder: Path) -> None:
    """Many conversations at once: commits per second beside single commits."""
    steps = 3

    async def run(graph: Any) -> None:
        threads = (place(f"t{number}") for number in range(CONVERSATIONS))
        calls = (graph.ainvoke(given(steps), at, durability="sync") for at in threads)
        await asyncio.gather(*calls)

    rates, singles = [], []
    for number in range(ROUNDS):
        singles.append(1 / bare(folder / f"single{number}.db", 300))
        with SqliteSaver(str(folder / f"crowd{number}.db")) as saver:
            graph = chat(talk_async, saver)
            took = seconds(lambda graph=graph: asyncio.run(run(graph)))
        rates.append(CONVERSATIONS * (steps + 2) / took)
    rate, single = median(rates), median(singles)
    print(
        f"{CONVERSATIONS} conversations at once:  {rate:7.0f} commits/s, "
        f"bare single ones {single:.0f}/s"
    )


def cold(folder: Path) -> None:
    """Opening the file and going on, after ever longer conversations."""
    for steps in (10, 1000, 10_000):
        path = str(folder / f"cold{steps}.db")
        with SqliteSaver(path, synchronous="OFF") as saver:
            chat(talk, saver).invoke(given(steps), place("t"))

        def go_on(path: str = path) -> None:
            with SqliteSaver(path) as saver:
                state = chat(talk, saver).get_state(place("t"))
                assert state.values["turn"] == len(state.values["messages"]) // 2

        took = median(seconds(go_on) for _ in range(ROUNDS)) * 1e3
        print(f"cold read after {steps:6} steps: {took:7.1f} ms")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for figure in (long_chat, crowd, cold):
            figure(Path(name))


if __name__ == "__main__":
    main()
