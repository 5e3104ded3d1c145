"""Many processes that give inputs and answers to the same threads at once.

As a program it reads what to do as JSON, forks the processes, replaces those that
killed themselves, and tells as JSON what went wrong. See `deadly` for how a
process dies.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import traceback
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypedDict

if __name__ == "__main__":
    from deadly import Errand, Reaper, is_postgres, watch_postgres, watch_sqlite
else:
    from .deadly import Errand, Reaper, is_postgres, watch_postgres, watch_sqlite

from towpath.checkpoint.sqlite import SqliteSaver
from towpath.errors import NothingToResumeError, UnknownInterruptError
from towpath.graph import END, START, StateGraph
from towpath.types import Command, interrupt

AT_ONCE = 8
"""How many runs an asynchronous process has under way."""


@dataclass(frozen=True)
class Plan:
    """Who does what."""

    place: str
    workers: int = 8
    inputs: int = 40
    """How many threads get an input from each worker."""
    questions: int = 10
    """How many threads ask as many questions as there are workers."""
    killed: int = 0
    """How many of the workers kill themselves, and are replaced."""
    readers: int = 0


@dataclass(frozen=True)
class Worker:
    """One process; the odd ones are asynchronous."""

    number: int
    dies_at: int | None = None
    careful: bool = False
    """Whether somebody with the same inputs died, so that one has to look first."""


def input_threads(plan: Plan) -> list[str]:
    return [f"input {n}" for n in range(plan.inputs)]


def question_threads(plan: Plan) -> list[str]:
    return [f"question {n}" for n in range(plan.questions)]


def token(worker: Worker, thread: str) -> str:
    return f"{worker.number} in {thread}"


# -- the graphs ------------------------------------------------------------------


class State(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]
    count: Annotated[int, operator.add]


def notes(saver: Any) -> Any:
    """Takes a note, and counts it."""
    builder: Any = StateGraph(State)
    builder.add_node("count", lambda state: {"count": 1})
    builder.add_edge(START, "count")
    return builder.compile(checkpointer=saver)


def asks(saver: Any, times: int) -> Any:
    """Asks so many questions, one after another."""

    def ask(state: State) -> State:
        return {"seen": [interrupt("who is there?")], "count": 1}

    builder: Any = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges(
        "ask", lambda state: "ask" if len(state["seen"]) < times else END, ["ask", END]
    )
    return builder.compile(checkpointer=saver)


# -- what a worker does ------------------------------------------------------------


def config_of(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def next_said(state: Any, said: str) -> Any:
    """What to say to a thread in this state; raises LookupError if all is said."""
    if said in state.values.get("seen", ()):
        raise LookupError
    if state.interrupts:
        return Command(resume={state.interrupts[0].id: said})
    return None if state.next else {"seen": [said]}


def give(worker: Worker, graph: Any, thread: str) -> None:
    config, said = config_of(thread), token(worker, thread)
    asked = thread.startswith("question")
    while True:
        given: Any = {"seen": [said]}
        if asked or worker.careful:
            try:
                given = next_said(graph.get_state(config), said)
            except LookupError:
                return
        try:
            graph.invoke(given, config)
        except (NothingToResumeError, UnknownInterruptError):
            continue  # another was faster
        if given is not None:  # else it went on with what was left
            return


async def agive(worker: Worker, graph: Any, thread: str, free: Any) -> None:
    config, said = config_of(thread), token(worker, thread)
    asked = thread.startswith("question")
    async with free:
        while True:
            given: Any = {"seen": [said]}
            if asked or worker.careful:
                try:
                    given = next_said(await graph.aget_state(config), said)
                except LookupError:
                    return
            try:
                await graph.ainvoke(given, config)
            except (NothingToResumeError, UnknownInterruptError):
                continue
            if given is not None:
                return


def open_saver(place: str) -> Any:
    if not is_postgres(place):
        return SqliteSaver(place, synchronous="NORMAL")
    from towpath.checkpoint.postgres import PostgresSaver

    return PostgresSaver(place, pool_size_max=4)


def work(plan: Plan, worker: Worker) -> None:
    reaper = Reaper(Errand(plan.place, "", dies_at=worker.dies_at))
    (watch_postgres if is_postgres(plan.place) else watch_sqlite)(reaper)
    threads = [*input_threads(plan), *question_threads(plan)]
    random.Random(worker.number).shuffle(threads)
    with closing(open_saver(plan.place)) as saver:
        graphs = {"input": notes(saver), "question": asks(saver, plan.workers)}
        if worker.number % 2 == 0:
            for thread in threads:
                give(worker, graphs[thread.split()[0]], thread)
        else:
            asyncio.run(work_at_once(worker, graphs, threads))


async def work_at_once(worker: Worker, graphs: Any, threads: list[str]) -> None:
    free = asyncio.Semaphore(AT_ONCE)
    calls = (agive(worker, graphs[t.split()[0]], t, free) for t in threads)
    await asyncio.gather(*calls)


# -- those who only look on ----------------------------------------------------------


def look_on(plan: Plan, number: int, over: int) -> None:
    """Read until the others are done; leave listings and transactions open."""

    def at_work() -> bool:
        return not select.select([over], [], [], 0)[0]

    if number % 2 == 0:
        keep_checkpointing(plan.place, at_work)
        return
    with closing(open_saver(plan.place)) as saver:
        graph = notes(saver)
        while at_work():
            listings = [saver.list(None) for _ in range(3)]
            for listing in listings:
                list(islice(listing, 2))
            for thread in input_threads(plan)[:5]:
                graph.get_state(config_of(thread))
            for listing in listings:
                list(islice(listing, 100))


def keep_checkpointing(path: str, at_work: Any) -> None:
    """Move the log into the file again and again, beside transactions that read."""
    with (
        closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as one,
        closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other,
    ):
        while at_work():
            one.execute("BEGIN")
            one.execute("SELECT count(*) FROM towpath_cells").fetchone()
            other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            one.execute("COMMIT")
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def open_at_once(path: str, begin: int) -> None:
    """Open a database that is not there yet, when all the others do."""
    select.select([begin], [], [])
    with SqliteSaver(path) as saver:
        notes(saver).invoke({"seen": ["x"]}, config_of(str(os.getpid())))


# -- the program ---------------------------------------------------------------------


def forked(job: Any, *args: Any) -> int:
    if child := os.fork():
        return child
    code = 1
    try:
        job(*args)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def hold(plan: Plan) -> dict[str, Any]:
    """Have all of it done; return how many were killed and how many failed."""
    with closing(open_saver(plan.place)) as saver:
        graph = asks(saver, plan.workers)
        for thread in question_threads(plan):
            graph.invoke({"seen": []}, config_of(thread))
    over, ended = os.pipe()
    readers = [forked(look_on, plan, n, over) for n in range(plan.readers)]
    at_work: dict[int, Worker] = {}
    for number in range(plan.workers):
        dies_at = 20 + 17 * number if number < plan.killed else None
        worker = Worker(number, dies_at)
        at_work[forked(work, plan, worker)] = worker
    killed = failed = 0
    while at_work:
        child, status = os.wait()
        if (worker := at_work.pop(child, None)) is None:
            failed += 1  # who looks on does not end before the others
        elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            killed += 1
            heir = replace(worker, careful=True, dies_at=35 if killed % 2 else None)
            at_work[forked(work, plan, heir)] = heir
        elif status:
            failed += 1
    os.write(ended, b"!")  # nobody reads it, so everybody sees it
    for child in readers:
        try:
            _, status = os.waitpid(child, 0)
        except ChildProcessError:
            continue
        failed += bool(status)
    return {"killed": killed, "failed": failed}


def open_many(plan: Plan) -> dict[str, Any]:
    failed = 0
    for number in range(plan.inputs):
        begin, go = os.pipe()
        path = f"{plan.place}-{number}"
        children = [forked(open_at_once, path, begin) for _ in range(plan.workers)]
        os.close(begin)
        os.write(go, b"!")
        for child in children:
            failed += bool(os.waitpid(child, 0)[1])
        os.close(go)
    return {"failed": failed}


def tell(plan: Plan, what: str = "hold") -> dict[str, Any]:
    """Run the program."""
    import towpath

    done = subprocess.run(
        [sys.executable, __file__, what, json.dumps(asdict(plan))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(towpath.__file__).parent.parent)},
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert not answer["failed"], done.stderr[-4000:]
    return answer


if __name__ == "__main__":
    job = {"hold": hold, "open": open_many}[sys.argv[1]]
    sys.stdout.write(json.dumps(job(Plan(**json.loads(sys.argv[2])))))
