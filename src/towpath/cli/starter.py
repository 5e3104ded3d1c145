"""The command that makes a new project, which runs as it is, without network."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Final

import click

from towpath.cli.options import debug_option, json_option, with_options
from towpath.cli.output import emit
from towpath.cli.plain import to_json
from towpath.cli.problem import Problem
from towpath.cli.view import program_words

GRAPH: Final = '''\
"""A reply is drafted, a person approves it or says what to change, and it is sent."""

from __future__ import annotations

import operator
from typing import Annotated, Literal, TypedDict

from towpath import END, START, Command, StateGraph, interrupt


class State(TypedDict, total=False):
    question: str
    draft: str
    log: Annotated[list[str], operator.add]  # several nodes write it: a reducer


def draft(state: State) -> State:
    """Stands for a model; call yours here."""
    text = f"Thank you for asking about {state['question']}."
    return {"draft": text, "log": ["drafted"]}


def approve(state: State) -> Command[Literal["send", "draft", "__end__"]]:
    """Stops here until somebody answers, in a second or in a month."""
    answer = interrupt(
        {"question": "Send this?", "draft": state["draft"]},
        response_schema={"enum": ["send", "again", "drop"]},
    )
    where = {"send": "send", "again": "draft", "drop": END}[answer]
    return Command(update={"log": [f"answered {answer}"]}, goto=where)


def send(state: State) -> State:
    return {"log": [f"sent: {state['draft']}"]}


builder = StateGraph(State)
builder.add_node("draft", draft)
builder.add_node("approve", approve)
builder.add_node("send", send)
builder.add_edge(START, "draft")
builder.add_edge("draft", "approve")
builder.add_edge("send", END)
'''

SETTINGS: Final = """\
# What the command line leaves out. Paths are meant from this file.
target = "graph.py:builder"
db = "threads.db"
# thread = "main"            # the thread of every command
# env = ".env"               # variables, or a table of them

# [config]                   # the config of every run
# recursion_limit = 50
"""

TEST: Final = '''\
"""The graph, from a question to a sent reply."""

from __future__ import annotations

from graph import builder
from towpath import Command, InMemorySaver


def test_a_reply_waits_for_approval_and_is_sent():
    graph = builder.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}

    graph.invoke({"question": "locks"}, thread)
    (question,) = graph.get_state(thread).interrupts
    assert question.value["question"] == "Send this?"

    done = graph.invoke(Command(resume="send"), thread)
    assert done["log"] == [
        "drafted",
        "answered send",
        "sent: Thank you for asking about locks.",
    ]


def test_nothing_in_the_graph_is_wired_wrongly():
    assert [one for one in builder.lint() if one.severity != "note"] == []
'''

PROJECT: Final = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["towpath[cli]"]

[tool.pytest.ini_options]
pythonpath = ["."]
"""

IGNORED: Final = """\
.env
.venv/
__pycache__/
*.db
*.db-shm
*.db-wal
"""

FILES: Final = {
    "graph.py": GRAPH,
    "towpath.toml": SETTINGS,
    "test_graph.py": TEST,
    "pyproject.toml": PROJECT,
    ".gitignore": IGNORED,
}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False), default=".")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@with_options(json_option, debug_option)
def init(folder: str, force: bool, as_json: bool) -> None:
    """Make a small project to start from.

    FOLDER gets a graph, its settings and a test, which need neither a network nor a
    key. By default it is the current folder.
    """
    place = Path(folder)
    taken = [name for name in FILES if (place / name).exists()]
    if taken and not force:
        raise Problem(
            f"{folder!r} has {', '.join(taken)} already",
            hint="name another folder, or use --force to overwrite",
        )
    name = re.sub(r"[^a-z0-9]+", "-", place.resolve().name.lower()).strip("-")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file, text in FILES.items():
            filled = text.replace("{name}", name or "project")
            (place / file).write_text(filled, "utf-8")
    except OSError as error:
        raise Problem(f"cannot write to {folder!r}: {error.strerror}") from error
    if as_json:
        emit(to_json({"folder": str(place), "files": list(FILES)}))
        return
    for file in FILES:
        emit(str(place / file))
    click.echo(next_steps(folder), err=True)


def next_steps(folder: str) -> str:
    """Say what to type now."""
    words = program_words()
    # A path from here would be wrong in the new folder.
    program = "towpath" if len(words) == 1 else f"{sys.executable} -m towpath.cli"
    steps = [
        *([] if folder == "." else [f"cd {shlex.quote(folder)}"]),
        f'{program} run --input \'{{"question": "locks"}}\' --thread first',
        f"{program} resume --thread first",
    ]
    return "try:\n" + "\n".join(f"  {step}" for step in steps)
