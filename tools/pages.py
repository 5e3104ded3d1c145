"""Play the pages of the documentation: run what they show, draw their pictures.

    python tools/pages.py              # draw the pictures of all pages anew
    python tools/pages.py docs/a.md    # of these

A page is played from top to bottom, in a folder of its own:

* "python" runs. All blocks of a page share one module.
* "python raises" must raise an error of Towpath's.
* 'python needs="starlette"' runs where that can be imported.
* 'python title="walk.py"' becomes that file, and so does any other language.
* "console" has its commands, the lines after "$", run, and what they print compared;
  "..." stands for anything.
* 'text of="picture.text"' must be what that expression is.
* "toml" is parsed.
* A comment `draw: EXPRESSION` before an image is the `Picture` in the image's file.

The pages of a folder in `STORIES` are played one after the other as one page is:
each goes on where the one before it stopped. What is not run, and why, is said by
`NOT_RUN` and `NO_COMMANDS`; tests/guards/test_docs.py lets nothing else pass.
"""

from __future__ import annotations

import contextlib
import doctest
import linecache
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import tomllib
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
STORIES: Final = ("tutorial",)

PROGRAMS: Final = {
    "from-langgraph.md": "each is a program of its own, which tests/compat runs",
    "remote.md": "asks a server",
}
"""Pages with blocks in "py", and why they are not played."""
NOT_RUN: Final = {
    "py": "Python that only the pages in `PROGRAMS` may have",
    "sh": "installs, asks at a terminal, or calls a target of make that CI runs",
    "text": "what a program shows, or a dialogue at a terminal",
    "yaml": "settings of other programs",
    "ini": "settings of other programs",
    "sql": "for a database's own shell",
    "html": "for a browser",
    "javascript": "for a browser",
}
"""Languages that are not run, and why."""
NO_COMMANDS: Final = ("pip", "createdb", "docker", "psql")
"""Commands that change the machine, or need what a test has not."""

PIECE: Final = re.compile(
    r"^(?P<mark>```+)(?P<language>\w*)(?P<words>[^\n]*)\n(?P<code>.*?)^(?P=mark)$"
    r"|^<!-- draw: (?P<drawn>.*?) -->\n!\[[^\]]*\]\((?P<image>[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)
COMPARED: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of a page that can be played.

    `language` is "draw" for a picture, whose file is then `title`.
    """

    page: Path
    line: int
    language: str
    code: str
    title: str = ""
    needs: str = ""
    of: str = ""
    flags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def numbered(self) -> str:
        """The code with empty lines in front, so that tracebacks name the page's."""
        return "\n" * self.line + self.code


def pieces(page: Path) -> Iterator[Piece]:
    """Yield what a page shows, from top to bottom."""
    text = page.read_text("utf-8")
    for match in PIECE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["drawn"]:
            yield Piece(page, line, "draw", match["drawn"], match["image"])
            continue
        options, flags = {}, set()
        for word in shlex.split(match["words"]):
            name, equals, value = word.partition("=")
            if equals:
                options[name] = value
            else:
                flags.add(name)
        yield Piece(
            page,
            line,
            match["language"],
            match["code"],
            options.get("title", ""),
            options.get("needs", ""),
            options.get("of", ""),
            frozenset(flags),
        )


def stories() -> Iterator[list[Path]]:
    """Yield the pages in the order in which they are read, those of a story at once."""
    told = {folder: sorted((DOCS / folder).glob("*.md")) for folder in STORIES}
    yield from (pages for pages in told.values() if pages)
    within = {page for pages in told.values() for page in pages}
    yield from ([page] for page in sorted(DOCS.rglob("*.md")) if page not in within)


class Stage:
    """Where pages are played: the working directory, and a module for their code."""

    def __init__(self) -> None:
        self.module = types.ModuleType("examples_of_a_page")
        self.raised: list[Exception] = []
        # Schemas look their names up in the module of the example.
        sys.modules[self.module.__name__] = self.module

    def play(self, page: Path) -> Iterator[tuple[Path, str]]:
        """Play a page, and yield its pictures: their files, and the SVG of now.

        Raises:
            AssertionError: a command printed something else, or nothing was raised.
        """
        show_source(page)
        for piece in pieces(page):
            if piece.language == "draw":
                svg = self.value(piece.code).svg
                yield (page.parent / piece.title).resolve(), f"{svg}\n"
            elif not piece.needs or find_spec(piece.needs):
                self.follow(piece)

    def follow(self, piece: Piece) -> None:
        """Do what a block is for."""
        if piece.title:
            Path(piece.title).write_text(piece.code, "utf-8")
        elif piece.of:
            now = str(self.value(piece.of))
            assert stripped(piece.code) == stripped(now), f"{piece}: {now}"
        elif piece.language == "toml":
            tomllib.loads(piece.code)
        elif piece.language == "python" and "raises" in piece.flags:
            self.fail(piece)
        elif piece.language == "python":
            self.run(piece)
        elif piece.language == "console":
            for line, expected in commands(piece):
                shown = obey(line)
                assert matches(expected, shown), f"{piece}: $ {line}\n{shown}"

    def run(self, piece: Piece) -> None:
        # Examples are programs of their own: none of this file's future imports.
        code = compile(piece.numbered, str(piece.page), "exec", dont_inherit=True)
        exec(code, vars(self.module))  # noqa: S102

    def value(self, expression: str) -> Any:
        """Evaluate with what the page has defined, and what draws pictures."""
        drawing = {"load": load, "sketch": sketch, "drawn_run": drawn_run}
        return eval(expression.strip(), {**vars(self.module), **drawing})  # noqa: S307

    def fail(self, piece: Piece) -> None:
        from towpath.errors import TowpathError

        try:
            self.run(piece)
        except TowpathError as error:
            self.raised.append(error)
        else:
            raise AssertionError(f"{piece}: raises nothing")


def show_source(page: Path) -> None:
    """Let who reads the source of an example's function find only code in a page."""
    text = page.read_text("utf-8")
    lines = ["\n"] * len(text.splitlines())
    for piece in pieces(page):
        if piece.language == "python":
            for number, line in enumerate(piece.code.splitlines(keepends=True)):
                lines[piece.line + number] = line
    linecache.cache[str(page)] = (len(text), None, lines, str(page))


def commands(piece: Piece) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block that are run, each with what it should print."""
    for command in re.split(r"^\$ ", piece.code, flags=re.MULTILINE)[1:]:
        line, _, output = command.partition("\n")
        while line.endswith("\\"):
            more, _, output = output.partition("\n")
            line = line[:-1] + more.strip()
        if shlex.split(line)[0] not in NO_COMMANDS:
            yield line, output


def matches(expected: str, shown: str) -> bool:
    """Say whether a command printed what a page says."""
    return doctest.OutputChecker().check_output(expected, shown, COMPARED)


def stripped(text: str) -> list[str]:
    """Return lines without the spaces that editors take away."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def obey(line: str) -> str:
    """Run a line as a shell would, and return all that it printed."""
    line, _, echo = line.partition("; ")
    words = shlex.split(os.path.expandvars(line))
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    output, status = (call if words[0] == "towpath" else spawn)(words)
    return output + (f"{status}\n" if echo == "echo $?" else "")


def call(words: list[str]) -> tuple[str, int]:
    """Run `towpath` in this process, which is faster."""
    from click.testing import CliRunner

    from towpath.cli.app import program

    before = set(sys.modules)
    result = CliRunner().invoke(program, words[1:])
    for name in set(sys.modules) - before:  # the file may be another one next time
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(Path.cwd())):
            del sys.modules[name]
    return result.output, result.exit_code


def spawn(words: list[str]) -> tuple[str, int]:
    """Run `python` or a module of its, such as `pytest`."""
    own = words[1:] if words[0] == "python" else ["-m", *words]
    plain = {"PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(  # noqa: S603
        [sys.executable, *own],
        env={**os.environ, **plain},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=100,
    )
    return ended.stdout, ended.returncode


def load(file: str) -> types.SimpleNamespace:
    """Return what a file of a page defines."""
    return types.SimpleNamespace(**runpy.run_path(file))


def sketch(title: str, *lines: str, **words: str) -> Any:
    """Draw what no graph of a page shows, from lines such as "a -> b: label".

    `words` has a note for a figure, after a status if there is one: "next: it died".
    """
    from towpath.picture.picture import Picture
    from towpath.picture.sketch import WORDS, Figure, Ran, Sketch, Stroke

    drawn = Sketch(title)
    figures: dict[str, Figure] = {}
    for line in lines:
        ends, _, label = line.partition(": ")
        source, target = ends.split(" -> ")
        for name in (source, target):
            status, colon, note = words.get(re.sub(r"\W", "_", name), "").partition(
                ": "
            )
            notes = (note if colon else status,) if note or not colon else ()
            ran = Ran(next(one for one in WORDS if one == status)) if colon else None
            figures.setdefault(name, Figure(name, name, notes=notes, ran=ran))
        drawn.strokes.append(Stroke(source, target, label))
    drawn.figures = list(figures.values())
    return Picture(drawn, str)


def drawn_run(graph: Any, value: object) -> Any:
    """Run a graph on a thread of its own, in virtual time, and draw that."""
    from towpath.testing import FrozenClock

    config = {"configurable": {"thread_id": "drawn"}}
    FrozenClock().invoke(graph, value, config)
    return graph.draw(config, xray=True)


def draw(pages: Iterable[Path]) -> None:
    """Write the pictures of pages that are played one after the other."""
    stage = Stage()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for page in pages:
            for file, svg in stage.play(page):
                file.parent.mkdir(exist_ok=True)
                file.write_text(svg, "utf-8")


def main(names: list[str]) -> int:
    """Draw the pictures of all pages that have any, or of those named."""
    wanted = {Path(name).resolve() for name in names}
    for pages in stories():
        if wanted.isdisjoint(pages) if names else not any(map(drawn, pages)):
            continue
        print(*(page.relative_to(ROOT) for page in pages))
        draw(pages)
    return 0


def drawn(page: Path) -> bool:
    """Say whether a page has pictures that it draws itself."""
    return any(piece.language == "draw" for piece in pieces(page))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main(sys.argv[1:]))
