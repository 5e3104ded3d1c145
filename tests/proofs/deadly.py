"""Runs graphs in processes that kill themselves at a given commit.

This is a program as well as a module. As a program it imports everything once
and then reads one errand a line; for each it forks a process, which costs
milliseconds, and tells how that ended. A process may have an appointment: its
n-th commit, and whether it dies just before the database hears of it or just
after the database has answered. Nothing cleans up after a SIGKILL, and nobody
has to wait for the right moment.
"""

from __future__ import annotations

import json
import operator
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from towpath.checkpoint.sqlite import SqliteSaver
from towpath.graph import END, START, StateGraph
from towpath.runtime import Runtime
from towpath.step.interrupts import is_done
from towpath.types import Command, Send, interrupt

THREAD = {"configurable": {"thread_id": "t"}}
WIDTH = 5
"""How many tasks a step of the graph has at most, those of subgraphs included."""


@dataclass(frozen=True)
class Errand:
    """What a process has to do, and when it dies."""

    place: str
    """A path, or the connection string of a Postgres server."""
    log: str
    durability: str = "sync"
    colour: str = "sync"
    dies_at: int | None = None
    before: bool = True
    what: str = "converse"


# -- the end -----------------------------------------------------------------


class Reaper:
    """Counts the commits of this process, and ends it at one of them."""

    def __init__(self, errand: Errand) -> None:
        self.at, self.before = errand.dies_at, errand.before
        self.commits = 0
        self.lock = threading.Lock()

    @contextmanager
    def commit(self):
        with self.lock:
            number, self.commits = self.commits, self.commits + 1
        due = number == self.at
        if due and self.before:
            die()
        yield
        if due:
            die()


def die():
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def watch_sqlite(reaper):
    """Have every commit of a transaction that writes pass by the reaper."""

    class Watched(sqlite3.Connection):
        writes = False

        def execute(self, sql, *args):
            if sql.startswith("BEGIN"):
                self.writes = "IMMEDIATE" in sql
            if sql == "COMMIT" and self.writes:
                with reaper.commit():
                    return super().execute(sql, *args)
            return super().execute(sql, *args)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(
        *args, **{"factory": Watched, **options}
    )


def watch_postgres(reaper):
    """The same for the batches that end with a commit."""
    from towpath.checkpoint.postgres.link import Link

    send, end = Link.send, Link.end

    def watched_send(self, sql, args=()):
        self.commits = sql == b"COMMIT"
        return send(self, sql, args)

    def watched_end(self):
        step = end(self)
        if not getattr(self, "commits", False):
            return step

        def watched_step():
            steps = reaper.commit()
            steps.__enter__()
            reply = step()
            if not hasattr(reply, "__await__"):
                steps.__exit__(None, None, None)
                return reply

            async def awaited():
                result = await reply
                steps.__exit__(None, None, None)
                return result

            return awaited()

        return watched_step

    Link.send, Link.end = watched_send, watched_end


def is_postgres(place: str) -> bool:
    return "dbname=" in place or "://" in place


def open_saver(place: str) -> Any:
    if not is_postgres(place):
        # The machine does not fail here, only the process.
        return SqliteSaver(place, synchronous="OFF")
    from towpath.checkpoint.postgres import PostgresSaver

    return PostgresSaver(place, pool_size_max=2)


# -- the graph -----------------------------------------------------------------


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    item: int
    note: dict[str, Any]


class Diary:
    """A file that outlives the process: which tasks began, and which finished."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, what: str, name: str, task: str) -> None:
        # One write each, which appends as a whole; what was written survives
        # the process without a sync, which only the machine's end would need.
        os.write(self.file, f"{what} {name} {task}\n".encode())


def make_graph(diary: Diary, saver: Any) -> Any:
    def node(name, work):
        def run(state: State, runtime: Runtime[None]) -> Any:
            task = runtime.execution_info.task_id
            diary.note("begin", name, task)
            result = work(state)
            diary.note("end", name, task)
            return result

        return run

    def add(builder, name, work, **options):
        builder.add_node(name, node(name, work), **options)

    def told(name):
        return lambda state: {
            "log": [f"{name}:{len(state.get('log', []))}"],
            "total": 1,
            "note": {"by": name, "seen": list(state.get("log", []))},
        }

    def fails(state):
        raise ValueError("as it always does")

    def asks(state):
        return {"log": [f"answer {interrupt('how many?')}"], "total": 1}

    def each(state):
        return {"log": [f"part {state['item']}"], "total": state["item"]}

    def handled(state: State, error: Exception, runtime: Runtime[None]) -> Any:
        task = runtime.execution_info.task_id
        diary.note("begin", "handled", task)
        diary.note("end", "handled", task)
        # Of an error of another process, the text is left.
        return {"log": [f"handled {'as it always does' in str(error)}"]}

    inner: Any = StateGraph(State)
    add(inner, "inner_a", lambda state: {"log": ["inner a"], "total": 1})
    add(inner, "inner_ask", asks)
    inner.add_edge(START, "inner_a")
    inner.add_edge("inner_a", "inner_ask")

    def call_inner(state):
        answer = subgraph.invoke({"log": [], "total": 0})
        return {"log": answer["log"], "total": answer["total"]}

    subgraph = inner.compile()
    builder: Any = StateGraph(State)
    add(builder, "first", told("first"))
    add(builder, "left", lambda state: {"log": ["left"], "total": 1})
    add(builder, "right", lambda state: {"log": ["right"], "total": 1})
    add(builder, "broken", fails, error_handler=handled)
    add(builder, "part", each)
    add(builder, "calls", call_inner)
    add(builder, "last", told("last"))
    builder.add_edge(START, "first")
    for name in ("left", "right", "broken"):
        builder.add_edge("first", name)
    builder.add_conditional_edges(
        "right",
        lambda state: [Send("part", {"item": n}) for n in range(3)],
        ["part"],
    )
    builder.add_edge("left", "calls")
    builder.add_edge(["part", "calls"], "last")
    builder.add_edge("last", END)
    return builder.compile(checkpointer=saver)


# -- what processes do -----------------------------------------------------------


def next_input(graph: Any) -> tuple[bool, Any]:
    """Whether anything is left to do, and what to say next."""
    state = graph.get_state(THREAD)
    if state.created_at is None:
        return True, {"log": ["in"], "total": 0}
    if state.interrupts:
        return True, Command(resume={asked.id: "seven" for asked in state.interrupts})
    return bool(state.next), None


def converse(errand: Errand, saver: Any) -> None:
    """Run, answer and resume until nothing is left to be done."""
    import asyncio

    graph = make_graph(Diary(errand.log), saver)
    for _ in range(20):
        goes_on, given = next_input(graph)
        if not goes_on:
            return
        options = {"durability": errand.durability}
        if errand.colour == "sync":
            graph.invoke(given, THREAD, **options)
        else:
            asyncio.run(graph.ainvoke(given, THREAD, **options))
    raise RuntimeError("the conversation has no end")


def outcome(graph: Any) -> dict[str, Any]:
    """What every telling of the conversation must agree on."""
    state = graph.get_state(THREAD)
    return {"values": state.values, "next": list(state.next)}


def saved_tasks(saver: Any) -> set[str]:
    """The tasks whose results are stored."""
    found = set()
    for saved in saver.list(THREAD):
        writes: dict[str, list[Any]] = {}
        for task, channel, value in saved.pending_writes:
            writes.setdefault(task, []).append((channel, value))
        found |= {task for task, own in writes.items() if is_done(own)}
    return found


def run(errand: Errand) -> dict[str, Any]:
    reaper = Reaper(errand)
    (watch_postgres if is_postgres(errand.place) else watch_sqlite)(reaper)
    with closing(open_saver(errand.place)) as saver:
        converse(errand, saver)
    return {"commits": reaper.commits}


# -- the program ----------------------------------------------------------------


def serve() -> None:
    """Fork a process for each errand, and tell how it ended."""
    warm_up()
    for line in sys.stdin:
        errand = Errand(**json.loads(line))
        reads, writes = os.pipe()
        if (child := os.fork()) == 0:
            os.close(reads)
            code = 1
            try:
                os.write(writes, json.dumps(run(errand)).encode())
                code = 0
            except BaseException:
                import traceback

                os.write(writes, json.dumps({"error": traceback.format_exc()}).encode())
            finally:
                os._exit(code)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            told = pipe.read()
        _, status = os.waitpid(child, 0)
        answer = json.loads(told) if told else {}
        if os.WIFSIGNALED(status):
            answer["signal"] = os.WTERMSIG(status)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def warm_up() -> None:
    """Do everything once that costs time the first time."""
    import asyncio
    import importlib
    import tempfile
    from importlib.util import find_spec

    if find_spec("psycopg") is not None:
        importlib.import_module("towpath.checkpoint.postgres")
    asyncio.run(asyncio.sleep(0))
    with tempfile.TemporaryDirectory() as folder:
        errand = Errand(f"{folder}/db", f"{folder}/log")
        # In a process of its own: threads would not survive the forks.
        if (child := os.fork()) == 0:
            with closing(open_saver(errand.place)) as saver:
                converse(errand, saver)
            os._exit(0)
        os.waitpid(child, 0)


class Server:
    """The program, from the outside."""

    def __init__(self) -> None:
        import towpath

        source = str(Path(towpath.__file__).parent.parent)
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )

    def send(self, errand: Errand) -> dict[str, Any]:
        """Have a process forked for an errand, and return how it ended."""
        print(json.dumps(asdict(errand)), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    serve()
