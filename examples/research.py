"""Research a question: split it, study its parts side by side, write, revise.

    python examples/research.py ["QUESTION"] [--folder docs]

The sources are the Markdown files of a folder, by default those of this project. The
model splits the question; each part is studied in a task of its own, from the
passages that fit it best; a text is written from what was found, and reviewed, at
most twice more:

    plan -> study (one per part) -> write <-> review -> save

Without a key for a model, a script takes the sentences of the sources as they are: see
models.py.
"""

from __future__ import annotations

import operator
import re
import sys
from collections import Counter
from math import log
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import BaseMessage

import models
from program import Lines, Program, parser, run, thread_of, whole_file
from towpath import END, START, Command, Overwrite, Send, StateGraph
from towpath.types import Checkpointer

SUMMARY = "Research a question in the Markdown files of a folder."
EXAMPLE = "What happens to a run when its process is killed?"
DOCS = Path(__file__).resolve().parent.parent / "docs"
CODE = re.compile(r"```.*?```", re.DOTALL)
PARTS_MAX = 5
PASSAGES = 3
REVISIONS_MAX = 2
PLAN = """\
Split the question into two to four narrower ones that can be looked up one by one.
Write one a line, nothing else."""
STUDY = """\
Answer the question from the passages alone, in three sentences at most. After each
sentence, name its source in brackets, as it stands before the passage. If the
passages do not answer it, say so."""
WRITE = """\
Write an answer of two or three paragraphs from the notes alone. Keep the sources in
brackets. Heed the review, if there is one."""
REVIEW = """\
Review the answer: does it answer the question, and has each claim a source in
brackets? Write `ok` and nothing else if it may be published. Otherwise say in one
sentence what must change."""


class Note(TypedDict):
    """What the study of one part of the question found."""

    part: str
    text: str
    sources: list[str]


class Part(TypedDict):
    """The state of one `study` task."""

    part: str
    folder: str


class Research(TypedDict, total=False):
    """The state; the first three are the input."""

    question: str
    folder: str
    report: str
    parts: list[str]
    notes: Annotated[list[Note], operator.add]
    text: str
    review: str
    revisions: int


# --------------------------------------------------------------------------- nodes


def plan(state: Research) -> dict[str, Any]:
    """Split the question."""
    lines = [
        re.sub(r"^\W*\d*\W*", "", one)
        for one in models.ask(script, PLAN, state["question"]).splitlines()
    ]
    return {
        "folder": str(Path(state.get("folder") or DOCS).resolve()),
        "report": str(Path(state.get("report") or "research.md").resolve()),
        "parts": [one for one in lines if one][:PARTS_MAX] or [state["question"]],
        # A thread may research again: its former notes must not be added to.
        "notes": Overwrite([]),
        "review": "",
        "revisions": 0,
    }


def fan_out(state: Research) -> list[Send]:
    """Send every part to a task of its own."""
    parts = [Part(part=part, folder=state["folder"]) for part in state["parts"]]
    return [Send("study", part) for part in parts]


def study(job: Part) -> dict[str, list[Note]]:
    """Answer a part of the question from the sources."""
    found = best(passages(Path(job["folder"])), job["part"])
    shown = "\n\n".join(f"[{source}]\n{text}" for source, text in found)
    text = models.ask(script, STUDY, f"Question: {job['part']}\n\n{shown}")
    sources = list(dict.fromkeys(source for source, _ in found))
    return {"notes": [Note(part=job["part"], text=text, sources=sources)]}


def write(state: Research) -> dict[str, str]:
    """Write the text, or write it again."""
    notes = "\n\n".join(f"## {one['part']}\n{one['text']}" for one in state["notes"])
    parts = [f"Question: {state['question']}", f"Notes:\n{notes}"]
    if state["review"]:
        parts += [f"Your former answer:\n{state['text']}", f"Review: {state['review']}"]
    return {"text": models.ask(script, WRITE, "\n\n".join(parts))}


def review(state: Research) -> Command[Literal["write", "save"]]:
    """Let the text pass, or send it back with what must change."""
    said = models.ask(
        script, REVIEW, f"Question: {state['question']}\n\nAnswer:\n{state['text']}"
    )
    is_good = said.strip("`*. \n").lower() == "ok"
    if is_good or state["revisions"] == REVISIONS_MAX:
        return Command(update={"review": said}, goto="save")
    again = {"review": said, "revisions": state["revisions"] + 1}
    return Command(update=again, goto="write")


def save(state: Research) -> dict[str, str]:
    """Write the report, whole or not at all."""
    used = sorted({source for note in state["notes"] for source in note["sources"]})
    sources = "\n".join(f"- {source}" for source in used) or "none"
    text = f"# {state['question']}\n\n{state['text']}\n\n## Read\n\n{sources}\n"
    whole_file(Path(state["report"]), text)
    return {"report": state["report"]}


# ------------------------------------------------------------------------- sources


def passages(folder: Path) -> list[tuple[str, str]]:
    """Cut the Markdown files of a folder at their headings."""
    found = []
    for file in sorted(folder.rglob("*.md")):
        text = CODE.sub("", file.read_text("utf-8", "replace"))
        name = file.relative_to(folder).as_posix()
        found += [(name, one.strip()) for one in re.split(r"(?m)^(?=#+ )", text)]
    return [(name, text) for name, text in found if len(text) > 80]


def words(text: str) -> list[str]:
    """Return the words of a text, cut off where most of them are inflected."""
    return [word[:6] for word in re.findall(r"\w{4,}", text.lower())]


def best(found: list[tuple[str, str]], question: str) -> list[tuple[str, str]]:
    """Choose the passages that have most of the question's rare words."""
    counts = [Counter(words(text)) for _, text in found]
    spread = Counter(word for count in counts for word in count)

    def fit(count: Counter[str]) -> float:
        return sum(
            log(len(found) / spread[word]) * count[word] / (count[word] + 1)
            for word in set(words(question))
            if word in count
        )

    ranked = sorted(range(len(found)), key=lambda n: -fit(counts[n]))
    return [found[n] for n in ranked[:PASSAGES] if fit(counts[n]) > 0]


# ------------------------------------------------------------ what the script says


def script(messages: list[BaseMessage]) -> str:
    """Do what a model would do, in the simplest way that has the same form."""
    system, text = (str(message.content) for message in messages)
    question = text.removeprefix("Question: ").partition("\n")[0]
    topic = " ".join(re.findall(r"\w{4,}", question))
    if system == PLAN:
        return f"1. {text}\n2. What must be heeded: {topic}?\n3. How to test: {topic}?"
    if system == STUDY:
        return " ".join(quotes(question, text)) or "The sources do not say."
    if system == WRITE:
        notes = text.partition("Notes:\n")[2].partition("\n\nYour former answer:")[0]
        notes = re.sub(r"(?m)^## .*\n", "", notes)
        return notes if "Review: " in text else re.sub(r" \[[^\]]*\]", "", notes)
    assert system == REVIEW
    return "ok" if re.search(r"\[\S+\]", text) else "Each claim needs its source."


def quotes(question: str, text: str) -> list[str]:
    """Take the sentence out of each passage that fits the question best."""
    wanted = set(words(question))
    taken = []
    for source, passage in re.findall(
        r"(?ms)^\[([^\]\n]+)\]\n(.*?)(?=^\[[^\]\n]+\]\n|\Z)", text
    ):
        prose = re.sub(r"(?m)^[#|].*$|[*`]", "", passage)
        sentences = [" ".join(one.split()) for one in re.split(r"(?<=[.])\s", prose)]
        pick = max(sentences, key=lambda one: len(wanted & set(words(one))))
        if pick:
            taken.append(f"{pick} [{source}]")
    return taken


# ----------------------------------------------------------------------- the graph


def build(checkpointer: Checkpointer = None) -> Any:
    """Wire the nodes."""
    builder = StateGraph(Research)
    for node in (plan, study, write, review):
        builder.add_node(node.__name__, node, retry_policy=models.RETRY)
    builder.add_node("save", save)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["study"])
    builder.add_edge("study", "write")
    builder.add_edge("write", "review")
    builder.add_edge("save", END)
    return builder.compile(checkpointer=checkpointer)


graph = build()


# --------------------------------------------------------------------- the program


def show(node: str, update: Any) -> Lines:
    """Tell what a node did."""
    if node == "plan":
        yield from (f"plan: {part}" for part in update["parts"])
    elif node == "study":
        note = update["notes"][0]
        yield f"study: {note['part']} (from {', '.join(note['sources']) or 'nothing'})"
    elif node == "write":
        yield f"write: {len(update['text'].split())} words"
    elif node == "review":
        yield f"review: {update['review']}"
    elif node == "save":
        yield f"save: {update['report']}"


def main(argv: list[str] | None = None) -> int:
    """Run the program; 0 is done."""
    options = parser(SUMMARY)
    models.add_option(options)
    option = options.add_argument
    option("question", nargs="?", default=EXAMPLE, help=f"(default: {EXAMPLE})")
    option("--folder", type=Path, default=DOCS, help="Markdown files (default: docs/)")
    option("--report", type=Path, default=Path("research.md"), help="Markdown file")
    args = options.parse_args(argv)
    if not args.question.strip():
        options.error("the question is empty")
    if not any(args.folder.rglob("*.md")):
        options.error(f"{str(args.folder)!r} has no Markdown files")
    models.choose(args, options)
    args.thread = args.thread or thread_of("research", args.question)
    values = {
        "question": args.question,
        "folder": str(args.folder.resolve()),
        "report": str(args.report.resolve()),
    }
    return run(Program(__file__, build, show, key="question"), values, args)


if __name__ == "__main__":
    sys.exit(main())
