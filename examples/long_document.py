"""Summarise a document that is far too long for one prompt, as a tree.

    python examples/long_document.py [FILE or FOLDER of .md files]

The text is cut into chunks at its paragraphs. Each chunk is summarised by a task of
its own; then each few summaries are summarised, level by level, until one is left:

    split -> climb -> summarise (one per chunk) -> climb -> summarise -> ... -> write

What a model has said costs money, so every summary is on disk as soon as it is there.
Killed at any point, the program goes on with the chunks that have none. The state
holds where chunks begin and end, not the text: that stays in its file, and is refused
if it changed meanwhile. Without a key for a model, a script picks sentences: see
models.py.
"""

from __future__ import annotations

import hashlib
import operator
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage

import models
from program import Lines, Program, parser, run, thread_of, whole_file
from towpath import END, START, Overwrite, Send, StateGraph
from towpath.types import Checkpointer

SUMMARY = "Summarise a long document as a tree, one model call per chunk, resumably."
DOCS = Path(__file__).resolve().parent.parent / "docs"
CHUNK_CHARS = 6000
FAN_IN = 6
AT_ONCE = 4
"""Calls of the model at the same time: providers limit them."""
OF_CHUNK = """\
Summarise this part of a longer document in three sentences at most. Keep names and
figures. Say nothing about it being a part."""
OF_SUMMARIES = """\
These are summaries of consecutive parts of a document. Summarise them in five
sentences at most, as one text. Keep what matters most for the whole."""


class Summary(TypedDict):
    """What stands for a chunk (level 0), or for some summaries of the level below."""

    level: int
    index: int
    count: int
    text: str


class Job(TypedDict):
    """The state of one `summarise` task: the span of a chunk, or a text."""

    level: int
    index: int
    count: int
    span: list[int] | None
    text: str
    path: str
    digest: str
    slow_s: float
    log: str | None


class Digest(TypedDict, total=False):
    """The state; the first five are the input."""

    path: str
    report: str
    chunk_chars: int
    slow_s: float
    log: str | None
    digest: str
    spans: list[list[int]]
    level: int
    summaries: Annotated[list[Summary], operator.add]


# -------------------------------------------------------------------- cut the text


def split(state: Digest) -> dict[str, Any]:
    """Find the chunks."""
    path = str(Path(state.get("path") or DOCS).resolve())
    text = read(path)
    if not text.strip():
        raise ValueError(f"{path!r} has no text")
    return {
        "path": path,
        "report": str(Path(state.get("report") or "summary.md").resolve()),
        "digest": digest_of(text),
        "spans": list(spans(text, state.get("chunk_chars", CHUNK_CHARS))),
        "level": -1,
        # A thread may begin anew: its former summaries must not be added to.
        "summaries": Overwrite([]),
    }


def read(path: str) -> str:
    """Return the text of a file, or of the Markdown files of a folder."""
    place = Path(path)
    files = sorted(place.rglob("*.md")) if place.is_dir() else [place]
    return "\n\n".join(file.read_text("utf-8", "replace") for file in files)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@lru_cache(maxsize=1)
def document(path: str, digest: str) -> str:
    """Return the text that was split.

    Raises:
        ValueError: it is another one by now.
    """
    text = read(path)
    if digest_of(text) != digest:
        raise ValueError(f"{path!r} changed since it was split: use another --thread")
    return text


def spans(text: str, size: int) -> Iterator[list[int]]:
    """Yield where chunks begin and end: whole paragraphs, as many as fit.

    A paragraph that does not fit is cut after a line, a word, or anywhere.
    """
    begin = 0
    while len(text) - begin > size:
        end = begin + size
        for mark in ("\n\n", "\n", " "):
            # No chunk shorter than half its size, unless the text wants it.
            found = text.rfind(mark, begin + size // 2, end)
            if found >= 0:
                end = found + len(mark)
                break
        yield [begin, end]
        begin = end
    if begin < len(text):
        yield [begin, len(text)]


# ---------------------------------------------------------------------- summarise


def fan_out(state: Digest) -> list[Send] | str:
    """Send what is to be summarised on this level to tasks of its own."""
    level = state["level"]
    below = [one["text"] for one in state["summaries"] if one["level"] == level - 1]
    if len(below) == 1:
        return "write"
    texts = ["\n\n".join(below[n : n + FAN_IN]) for n in range(0, len(below), FAN_IN)]
    todo: list[tuple[list[int] | None, str]] = [(None, text) for text in texts]
    if level == 0:
        todo = [(span, "") for span in state["spans"]]
    jobs = [
        Job(
            level=level,
            index=index,
            count=len(todo),
            span=span,
            text=text,
            path=state["path"],
            digest=state["digest"],
            slow_s=state.get("slow_s", 0.0),
            log=state.get("log"),
        )
        for index, (span, text) in enumerate(todo)
    ]
    return [Send("summarise", job) for job in jobs]


def summarise(job: Job) -> dict[str, list[Summary]]:
    """Ask the model for one summary."""
    if job["log"]:
        with Path(job["log"]).open("a", encoding="utf-8") as log:
            log.write(f"{job['level']}.{job['index']}\n")
    time.sleep(job["slow_s"])
    text = job["text"]
    if job["span"]:
        begin, end = job["span"]
        text = document(job["path"], job["digest"])[begin:end]
    text = models.ask(script, OF_SUMMARIES if job["level"] else OF_CHUNK, text)
    return {
        "summaries": [
            Summary(
                level=job["level"],
                index=job["index"],
                count=job["count"],
                text=text,
            )
        ]
    }


def climb(state: Digest) -> dict[str, int]:
    """Go up a level: to the chunks, or to the summaries of what was summarised."""
    return {"level": state["level"] + 1}


# -------------------------------------------------------------------------- write


def write(state: Digest) -> dict[str, str]:
    """Write the tree into a file: the whole first, then what it was made of."""
    lines = [f"# Summary of {Path(state['path']).name}", ""]
    for level in range(state["level"] - 1, -1, -1):
        some = [one["text"] for one in state["summaries"] if one["level"] == level]
        if len(some) > 1:
            lines += [f"## Level {level}: {len(some)} parts", ""]
            some = [f"{n}. {' '.join(text.split())}" for n, text in enumerate(some, 1)]
        lines += ["\n".join(some), ""]
    whole_file(Path(state["report"]), "\n".join(lines))
    return {"report": state["report"]}


# ------------------------------------------------------------ what the script says


def script(messages: list[BaseMessage]) -> str:
    """Pick the sentences that have most of the words that the text has most of."""
    text = re.sub(r"```\w*", "\n\n", str(messages[-1].content))
    weight = Counter(re.findall(r"\w{5,}", text.lower()))
    sentences = [
        one
        for one in map(" ".join, map(str.split, re.split(r"(?<=[.!?])\s|\n\n", text)))
        if re.fullmatch(r"[A-Z][^=_{}|$]{30,300}[.!?]", one)
    ]

    def worth(sentence: str) -> float:
        words = re.findall(r"\w{5,}", sentence.lower())
        return sum(weight[word] for word in words) / (len(words) + 5)

    best = sorted(set(sentences), key=worth, reverse=True)[:3]
    return (
        " ".join(one for one in dict.fromkeys(sentences) if one in best) or "Nothing."
    )


# ---------------------------------------------------------------------- the graph


def build(checkpointer: Checkpointer = None) -> Any:
    """Wire the nodes."""
    builder = StateGraph(Digest)
    builder.add_node("split", split)
    builder.add_node("summarise", summarise, retry_policy=models.RETRY)
    builder.add_node("climb", climb)
    builder.add_node("write", write)
    builder.add_edge(START, "split")
    builder.add_edge("split", "climb")
    builder.add_edge("summarise", "climb")
    builder.add_conditional_edges("climb", fan_out, ["summarise", "write"])
    builder.add_edge("write", END)
    compiled = builder.compile(checkpointer=checkpointer)
    return compiled.with_config(max_concurrency=AT_ONCE)


graph = build()


# -------------------------------------------------------------------- the program


def show(node: str, update: Any) -> Lines:
    """Tell what a node did."""
    if node == "split":
        yield f"split: {len(update['spans'])} chunks"
    elif node == "summarise":
        one = update["summaries"][0]
        yield f"summarise: level {one['level']}, {one['index'] + 1} of {one['count']}"
    elif node == "write":
        yield f"write: {update['report']}"


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done."""
    options = parser(SUMMARY)
    models.add_option(options)
    option = options.add_argument
    option("path", nargs="?", type=Path, default=DOCS, help="text (default: docs/)")
    option("--report", type=Path, default=Path("summary.md"), help="Markdown file")
    option(
        "--chunk", type=int, default=CHUNK_CHARS, metavar="N", help="letters a chunk"
    )
    option("--slow", type=float, default=0.0, metavar="S", help="seconds more per call")
    option("--log", type=Path, help="append the name of every call of the model")
    args = options.parse_args(words)
    path = str(args.path.resolve())
    if not args.path.exists() or not read(path).strip():
        options.error(f"{str(args.path)!r} has no text")
    if args.chunk < 100:
        options.error("--chunk: at least 100")
    models.choose(args, options)
    args.thread = args.thread or thread_of("summary", path)
    values = {
        "path": path,
        "report": str(args.report.resolve()),
        "chunk_chars": args.chunk,
        "slow_s": args.slow,
        "log": args.log and str(args.log.resolve()),
    }
    return run(Program(__file__, build, show, key="path"), values, args)


if __name__ == "__main__":
    sys.exit(main())
