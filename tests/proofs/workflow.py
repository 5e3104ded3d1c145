"""A workflow that kills its own process as soon as it has its n-th result.

`python workflow.py FOLDER COLOUR` runs it once without dying, and then once for each
of its results: by a process that dies as soon as it is given that one, and by
another that goes on to the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from towpath import Command, Runtime, get_runtime, interrupt
from towpath.checkpoint.sqlite import SqliteSaver
from towpath.func import entrypoint, task

THREAD = {"configurable": {"thread_id": "t"}}


class Log:
    """Lines on disk: what began, and whose result the workflow has had."""

    def __init__(self, path: str, dies_at: int) -> None:
        self.path = Path(path)
        self.left = dies_at

    def begins(self, name: str) -> None:
        with self.path.open("a") as lines:
            lines.write(f"begin {name} {get_runtime().idempotency_key}\n")

    def has(self, name: str) -> None:
        with self.path.open("a") as lines:
            lines.write(f"has {name}\n")
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()


def make_flow(saver: Any, log: Log) -> Any:
    @task
    def leaf(name: str) -> str:
        log.begins(name)
        return name

    @task
    def middle(name: str) -> str:
        log.begins(name)
        part = leaf(f"{name}/leaf").result()
        log.has(part)
        return name

    @entrypoint(checkpointer=saver)
    def flow(_: Any, runtime: Runtime) -> list[Any]:
        found = []
        for future in [leaf("a"), middle("b"), leaf("c")]:
            found.append(future.result())
            log.has(found[-1])

        def step(name: str) -> str:
            log.begins(name)
            return name

        for name in ("d", "e"):
            found.append(runtime.step(name, step, name))
            log.has(name)
        found.append(interrupt("go on?"))
        found.append(leaf("f").result())
        log.has("f")
        return found

    return flow


def go_on(place: str, log: Log, colour: str) -> Any:
    """Run the workflow, or go on with it, to its end."""
    with SqliteSaver.from_conn_string(place) as saver:
        flow = make_flow(saver, log)
        while True:
            state = flow.get_state(THREAD)
            if "checkpoint_id" not in state.config["configurable"]:
                given: Any = 0
            elif not state.next:
                return state.values
            else:
                given = Command(resume="yes") if state.interrupts else None
            if colour == "sync":
                flow.invoke(given, THREAD)
            else:
                asyncio.run(flow.ainvoke(given, THREAD))


def forked(folder: str, name: str, dies_at: int, colour: str) -> int:
    """Go on in a process of its own, and return how that ended."""
    pid = os.fork()
    if pid == 0:
        place = f"{folder}/{name}"
        values = go_on(f"{place}.sqlite", Log(f"{place}.log", dies_at), colour)
        Path(f"{place}.json").write_text(json.dumps(values))
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def main(folder: str, colour: str) -> None:
    forked(folder, "whole", 0, colour)
    results = Path(f"{folder}/whole.log").read_text().count("has ")
    for moment in range(1, results + 1):
        name = f"dies-{moment}"
        endings = [forked(folder, name, dies_at, colour) for dies_at in (moment, 0)]
        assert [signal.SIGKILL, 0] == endings, (name, endings)


if __name__ == "__main__":
    main(*sys.argv[1:])
