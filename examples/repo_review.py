"""Review a directory of Python code: a durable graph, from one command.

    python examples/repo_review.py [PATH] [--yes]

The graph lists the files, measures each one in a task of its own (one `Send` per
file), looks for faults in what was measured, ranks them, asks which of them to
keep, and writes a Markdown report:

    list_files -> measure (one per file) -> find -> rank -> choose -> write_report

Every finished task is on disk before anything else happens, so the program can
be killed at any point: run it again with the same `--thread`, or use `towpath
resume examples/repo_review.py:graph`, and it goes on without measuring a finished
file again. Whatever the directory holds (syntax errors, foreign encodings,
unreadable files, links in circles) ends up as a finding, never as a crash.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import operator
import os
import re
import shlex
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypedDict

from towpath import END, START, Command, Overwrite, Send, StateGraph, interrupt
from towpath.checkpoint.sqlite import SqliteSaver

SUMMARY = "Review a directory of Python code with a durable graph."
HERE = Path(__file__).resolve().parent
BYTES_MAX = 4_000_000
FILES_MAX = 50_000
FUNCTION_LINES_MAX = 60
MODULE_LINES_MAX = 600
ASKED_MAX = 15
SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}


class Place(TypedDict):
    """Something that was found, where, and how much it matters."""

    where: str
    text: str
    weight: int


class Function(TypedDict):
    name: str
    line: int
    lines: int


class Measure(TypedDict):
    """What one file told. `fault` says why it told nothing else."""

    name: str
    lines: int
    long: list[Function]
    public: int
    undocumented: list[str]
    imports: list[str]
    fault: str | None


class Job(TypedDict):
    """The state of one `measure` task: it sees this and nothing of the others."""

    root: str
    name: str
    slow_s: float
    log: str | None


class Review(TypedDict, total=False):
    """The state of a review; the first four are its input."""

    path: str
    report: str
    slow_s: float
    log: str | None
    root: str
    files: list[str]
    troubles: list[Place]
    measures: Annotated[list[Measure], operator.add]
    found: list[Place]
    ranked: list[Place]
    kept: list[int]


# ---------------------------------------------------------------- list the files


def list_files(state: Review) -> dict[str, Any]:
    """List the Python files below the path, and what could not be listed."""
    root = Path(state.get("path") or default_path()).resolve()
    if not root.is_dir():
        raise NotADirectoryError(f"{str(root)!r} is not a directory")
    files: list[str] = []
    troubles: list[Place] = []
    for name in walk(root, troubles):
        if len(files) == FILES_MAX:
            text = f"only the first {FILES_MAX} files were reviewed"
            troubles.append(Place(where=".", text=text, weight=100))
            break
        files.append(name)
    return {
        "root": str(root),
        "report": str(Path(state.get("report") or "repo-review.md").resolve()),
        "files": sorted(files),
        "troubles": troubles,
        # A thread may review again: its former measures must not be added to.
        "measures": Overwrite([]),
    }


def walk(root: Path, troubles: list[Place]) -> Iterator[str]:
    """Yield relative names, without following links to folders (they may circle)."""

    def trouble(name: str, text: str) -> None:
        shown = name.encode("utf-8", "backslashreplace").decode()
        troubles.append(Place(where=shown, text=text, weight=90))

    def unreadable(error: OSError) -> None:
        name = os.path.relpath(error.filename, root)
        trouble(name, f"folder cannot be read: {error.strerror}")

    for folder, below, names in os.walk(root, onerror=unreadable):
        here = Path(folder)
        below[:] = sorted(name for name in below if is_code_folder(here / name))
        for name in sorted(names):
            relative = (here / name).relative_to(root).as_posix()
            if not name.endswith((".py", ".pyi")):
                continue
            if relative.isprintable():
                yield relative
            else:
                trouble(relative, "not reviewed: its name is not printable text")


def is_code_folder(folder: Path) -> bool:
    """Leave out hidden folders, virtual environments and what tools generate."""
    if folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS:
        return False
    return not os.path.lexists(folder / "pyvenv.cfg")


def default_path() -> str:
    """Return the `src` folder beside the examples: the program's own code."""
    return str(HERE.parent / "src")


def fan_out(state: Review) -> list[Send] | str:
    """Send every file to a task of its own."""
    shared = {
        "root": state["root"],
        "slow_s": state.get("slow_s", 0.0),
        "log": state.get("log"),
    }
    return [Send("measure", {**shared, "name": name}) for name in state["files"]] or (
        "find"
    )


# -------------------------------------------------------------- measure one file


def measure(job: Job) -> dict[str, list[Measure]]:
    """Parse and measure one file."""
    if job["log"]:
        with Path(job["log"]).open("a", encoding="utf-8") as log:
            log.write(job["name"] + "\n")
    if job["slow_s"]:
        time.sleep(job["slow_s"])
    return {"measures": [measure_file(Path(job["root"]), job["name"])]}


def measure_file(root: Path, name: str) -> Measure:
    """Measure one file, or say why it cannot be measured."""
    try:
        source = read(root / name)
        # Parsing bytes lets Python find the encoding as it does for itself.
        return measure_tree(name, source, ast.parse(source, name))
    except SyntaxError as error:
        fault = f"cannot be parsed: {error.msg} (line {error.lineno or 1})"
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        fault = f"cannot be read: {reason}"
    return Measure(
        name=name,
        lines=0,
        long=[],
        public=0,
        undocumented=[],
        imports=[],
        fault=fault,
    )


def read(path: Path) -> bytes:
    """Read a regular file of a sane size; a pipe would wait for ever."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if status.st_size > BYTES_MAX:
        raise ValueError(f"it is larger than {BYTES_MAX // 1_000_000} MB")
    return path.read_bytes()


def measure_tree(name: str, source: bytes, tree: ast.Module) -> Measure:
    """Measure what a parsed file defines and imports."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    long, undocumented = [], []
    public = 0
    for node in ast.walk(tree):
        if not isinstance(node, definitions):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if not isinstance(node, ast.ClassDef) and lines > FUNCTION_LINES_MAX:
            long.append(Function(name=node.name, line=node.lineno, lines=lines))
        if not node.name.startswith("_"):
            public += 1
            if ast.get_docstring(node, clean=False) is None:
                undocumented.append(node.name)
    return Measure(
        name=name,
        lines=len(source.splitlines()),
        long=long,
        public=public,
        undocumented=undocumented,
        imports=sorted(set(imports(tree.body))),
        fault=None,
    )


def imports(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield what is imported while the module loads, as `..package.module:name`."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (f"{base}:{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and is_never_imported(node.test):
            yield from imports(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody", "handlers"):
                yield from imports(getattr(node, part, ()))


def is_never_imported(test: ast.expr) -> bool:
    """Tell `if TYPE_CHECKING` and `if __name__ == "__main__"`."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    return not names.isdisjoint({"TYPE_CHECKING", "__name__"})


# --------------------------------------------------------- find, rank and choose


def find(state: Review) -> dict[str, list[Place]]:
    """Reduce the measures to findings."""
    measures = sorted(state["measures"], key=lambda taken: taken["name"])
    found = list(state["troubles"])
    for taken in measures:
        found += find_in(taken)
    imported = import_graph(measures, Path(state["root"]).name)
    for size, cycle in import_knots(imported):
        way = " -> ".join([*cycle, cycle[0]])
        text = f"{size} modules import each other in circles, such as {way}"
        found.append(Place(where=cycle[0], text=text, weight=60 + size))
    return {"found": found}


def find_in(taken: Measure) -> Iterator[Place]:
    """Yield the findings about one file."""
    name = taken["name"]
    if taken["fault"]:
        yield Place(where=name, text=taken["fault"], weight=90)
    if (lines := taken["lines"]) > MODULE_LINES_MAX:
        yield Place(where=name, text=f"module of {lines} lines", weight=lines // 60)
    for function in taken["long"]:
        text = f"`{function['name']}` is {function['lines']} lines long"
        where = f"{name}:{function['line']}"
        yield Place(where=where, text=text, weight=function["lines"] // 6)
    if missing := taken["undocumented"]:
        shown = ", ".join(f"`{name}`" for name in missing[:3])
        more = ", ..." if len(missing) > 3 else ""
        text = f"{len(missing)} of {taken['public']} public names have no docstring"
        weight = 1 + 9 * len(missing) // taken["public"]
        yield Place(where=name, text=f"{text} ({shown}{more})", weight=weight)


def module_names(files: Iterable[str], root: str) -> dict[str, str]:
    """Map module names to files, counting packages from their topmost `__init__`."""
    paths = [PurePosixPath(name) for name in files]
    packages = {path.parent for path in paths if path.stem == "__init__"}
    modules: dict[str, str] = {}
    for path in paths:
        parts = [] if path.stem == "__init__" else [path.stem]
        folder = path.parent
        while folder in packages:
            parts.insert(0, folder.name or root)
            if folder == folder.parent:
                break
            folder = folder.parent
        modules.setdefault(".".join(parts), path.as_posix())
    return modules


def import_graph(measures: Iterable[Measure], root: str) -> dict[str, set[str]]:
    """Map each module to the modules of the same tree that it imports."""
    by_file = {taken["name"]: taken for taken in measures}
    modules = module_names(by_file, root)
    graph: dict[str, set[str]] = {}
    for module, name in modules.items():
        is_package = PurePosixPath(name).stem == "__init__"
        package = module if is_package else module.rpartition(".")[0]
        targets = (target(text, package, modules) for text in by_file[name]["imports"])
        graph[module] = {other for other in targets if other not in {None, module}}
    return graph


def target(text: str, package: str, modules: Mapping[str, str]) -> str | None:
    """Return the module that an import means, when it is one of the tree."""
    base, attribute = absolute(text, package)
    whole = f"{base}.{attribute}"
    return whole if whole in modules else base if base in modules else None


def absolute(text: str, package: str) -> tuple[str, str]:
    """Split `..package.module:name` into an absolute module and the name."""
    base, _, attribute = text.partition(":")
    level = len(base) - len(base.lstrip("."))
    if level:
        above = package.split(".")[: len(package.split(".")) - level + 1]
        base = ".".join([*above, *filter(None, [base.lstrip(".")])])
    return base, attribute


def import_knots(graph: Mapping[str, set[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the size and a shortest cycle of each knot of modules that need each other.

    A knot is what can be reached from a module and reaches it again.
    """
    graph = without_ends(graph)
    back: dict[str, set[str]] = {module: set() for module in graph}
    for module, to in graph.items():
        for other in to:
            back[other].add(module)
    knotted: set[str] = set()
    for start in sorted(graph):
        if start not in knotted:
            knot = reached(graph, start) & reached(back, start)
            knotted |= knot
            if knot:
                cycles = (shortest_cycle(graph, module) for module in sorted(knot))
                yield len(knot), min(cycles, key=len)


def reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return all modules that can be reached from one, itself only by a cycle."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = graph[waiting.pop()] - seen
        seen |= fresh
        waiting += fresh
    return seen


def without_ends(graph: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    """Drop modules that import none of the rest: they are in no cycle."""
    size = len(graph) + 1
    while len(graph) < size:
        size = len(graph)
        graph = {
            module: kept for module, to in graph.items() if (kept := to & graph.keys())
        }
    return graph


def shortest_cycle(graph: Mapping[str, set[str]], start: str) -> list[str]:
    """Return the shortest way from a module back to itself, or nothing."""
    before: dict[str, str] = {}
    layer = [start]
    while layer:
        following = []
        for module in layer:
            for target in sorted(graph[module]):
                if target == start:
                    way = [module]
                    while way[-1] != start:
                        way.append(before[way[-1]])
                    return way[::-1]
                if target not in before:
                    before[target] = module
                    following.append(target)
        layer = following
    return []


def rank(state: Review) -> dict[str, list[Place]]:
    """Put what matters most first."""
    ranked = sorted(
        state["found"], key=lambda place: (-place["weight"], place["where"])
    )
    return {"ranked": ranked}


def choose(state: Review) -> dict[str, list[int]]:
    """Ask a person which findings to keep, until the answer can be understood."""
    ranked = state["ranked"]
    if not ranked:
        return {"kept": []}
    asked = ranked[:ASKED_MAX]
    few = ", of which these matter most," if len(ranked) > ASKED_MAX else ""
    question: dict[str, Any] = {
        "question": f"Which of {len(ranked)} findings{few} go into the report?",
        "answers": 'all, none, or numbers such as "1,3-5"',
        "options": [
            f"{n}. {p['where']}: {p['text']}" for n, p in enumerate(asked, start=1)
        ],
    }
    while True:
        try:
            return {"kept": chosen(interrupt(question), len(asked), len(ranked))}
        except ChoiceError as error:
            question = {**question, "problem": str(error)}


class ChoiceError(ValueError):
    """An answer that names no findings."""


def chosen(answer: object, shown: int, count: int) -> list[int]:
    """Read an answer: `all`, `none`, or numbers and ranges of what was shown."""
    text = ",".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    text = text.strip().lower()
    if text in {"all", "true", "yes", "y", ""} and answer != []:
        return list(range(1, count + 1))
    if text in {"none", "false", "no", "n", ""}:
        return []
    kept: set[int] = set()
    for part in re.split(r"[,\s]+", text):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if match is None:
            raise ChoiceError(f"{part!r} is not a number, a range, all or none")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= shown:
            raise ChoiceError(f"{part!r} is not between 1 and {shown}")
        kept.update(range(first, last + 1))
    return sorted(kept)


# --------------------------------------------------------------- write the report


def write_report(state: Review) -> dict[str, str]:
    """Write the report, whole or not at all."""
    path = Path(state["report"])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(report_text(state), "utf-8")
    draft.replace(path)
    return {"report": str(path)}


def report_text(state: Review) -> str:
    """Render the report."""
    measures, ranked, kept = state["measures"], state["ranked"], state["kept"]
    public = sum(taken["public"] for taken in measures)
    bare = sum(len(taken["undocumented"]) for taken in measures)
    lines = [
        f"# Review of `{state['root']}`",
        "",
        f"- files: {len(measures)}",
        f"- lines: {sum(taken['lines'] for taken in measures)}",
        f"- public names with a docstring: {public - bare} of {public}",
        f"- findings kept: {len(kept)} of {len(ranked)}",
        "",
        "## Findings",
        "",
    ]
    lines += [
        f"{n}. `{ranked[k - 1]['where']}`: {ranked[k - 1]['text']}"
        for n, k in enumerate(kept, start=1)
    ] or ["None."]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- the graph


def build() -> StateGraph[Review]:
    """Wire the nodes."""
    builder = StateGraph(Review)
    builder.add_node("list_files", list_files)
    builder.add_node("measure", measure)
    builder.add_node("find", find)
    builder.add_node("rank", rank)
    builder.add_node("choose", choose)
    builder.add_node("write_report", write_report)
    builder.add_edge(START, "list_files")
    builder.add_conditional_edges("list_files", fan_out, ["measure", "find"])
    builder.add_edge("measure", "find")
    builder.add_edge("find", "rank")
    builder.add_edge("rank", "choose")
    builder.add_edge("choose", "write_report")
    builder.add_edge("write_report", END)
    return builder


graph = build()


# -------------------------------------------------------------------- the program


class Lines:
    """Progress as plain lines, for a log or a pipe."""

    def __init__(self, done: set[str], total: int) -> None:
        self.done, self.total = done, total

    def say(self, text: str) -> None:
        """Show a line."""
        print(text, flush=True)

    def listed(self, files: list[str]) -> None:
        """Learn how many files there are."""
        self.done.clear()
        self.total = len(files)
        self.say(f"list_files: {self.total} files")

    def measured(self, taken: Measure) -> None:
        """Count a measured file."""
        self.done.add(taken["name"])
        self.say(f"measure: {len(self.done)}/{self.total} {taken['name']}")


class Bar(Lines):
    """Progress as a live bar, in a terminal."""

    def __init__(self, done: set[str], total: int, bar: Any) -> None:
        super().__init__(done, total)
        self.bar = bar
        some = {"total": total, "completed": len(done), "visible": total > 0}
        self.row = bar.add_task("measure", **some)

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        self.bar.console.print(text, markup=False, highlight=False)

    def listed(self, files: list[str]) -> None:
        """Set the length of the bar."""
        super().listed(files)
        self.bar.update(self.row, total=len(files), completed=0, visible=True)

    def measured(self, taken: Measure) -> None:
        """Move the bar."""
        self.done.add(taken["name"])
        self.bar.update(self.row, completed=len(self.done), description=taken["name"])


@contextmanager
def progress(done: set[str], total: int) -> Iterator[Lines]:
    """Choose a bar for a terminal with rich at hand, and lines elsewhere."""
    if not (sys.stdout.isatty() and find_spec("rich")):
        yield Lines(done, total)
        return
    from rich import progress as rich

    columns = (
        rich.SpinnerColumn(),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.description}", markup=False),
    )
    with rich.Progress(*columns) as bar:
        yield Bar(done, total, bar)


def show(line: Lines, node: str, update: Any) -> None:
    """Show what a node did."""
    if node == "list_files":
        line.listed(update["files"])
    elif node == "measure":
        line.measured(update["measures"][0])
    elif node == "find":
        line.say(f"find: {len(update['found'])} findings")
    elif node == "choose":
        line.say(f"choose: {len(update['kept'])} kept")
    elif node == "write_report":
        line.say(f"write_report: {update['report']}")


def advance(app: Any, step: Any, config: dict[str, Any]) -> None:
    """Run until the end or a question, showing progress."""
    # After a crash, the tasks that finished are known from their saved writes.
    tasks = [one for one in app.get_state(config).tasks if one.name == "measure"]
    done = {task.result["measures"][0]["name"] for task in tasks if task.result}
    with progress(done, len(tasks)) as line:
        for update in app.stream(step, config, stream_mode="updates"):
            if "__metadata__" in update:  # told again, as it finished before a crash
                continue
            for node, value in update.items():
                if not node.startswith("__"):
                    show(line, node, value)


def ask(question: Mapping[str, Any], *, yes: bool) -> str:
    """Answer a question of the graph: by a person, or with everything."""
    if yes:
        return "all"
    width = shutil.get_terminal_size().columns
    # One line each: what scrolls away cannot be chosen from.
    print(f"\n? {question['question']}")
    print(
        *(f"    {shortened(one, width - 4)}" for one in question["options"]), sep="\n"
    )
    if "problem" in question:
        print(f"  problem: {question['problem']}")
    return input(f"answer ({question['answers']}) [all]: ") or "all"


def shortened(line: str, width: int) -> str:
    """Cut a line that would wrap; a pipe gets it whole."""
    if len(line) < width or not sys.stdout.isatty():
        return line
    return f"{line[: width - 5]} ..."


def review(app: Any, args: argparse.Namespace) -> int:
    """Start a review, or go on with the one the thread holds."""
    config = {"configurable": {"thread_id": args.thread}, "max_concurrency": 8}
    before = app.get_state(config)
    path = before.values.get("path", str(args.path)) if before.next else str(args.path)
    if path != str(args.path):
        print(f"thread {args.thread} is reviewing {path}: use another --thread")
        return 2
    print(f"{'going on with' if before.next else 'reviewing'} {path}")
    print("if stopped, run the same again, or go on with:")
    print(f"  {resume_command(args)}", flush=True)
    if not before.next:
        values = {
            "path": path,
            "report": str(args.report),
            "slow_s": args.slow,
            "log": args.log and str(args.log.resolve()),
        }
        advance(app, values, config)
    elif not before.interrupts:
        advance(app, None, config)
    while questions := app.get_state(config).interrupts:
        if not (args.yes or sys.stdin.isatty()):
            print(f"waiting for an answer: {resume_command(args)} --answer '\"all\"'")
            return 3
        answers = {q.id: ask(q.value, yes=args.yes) for q in questions}
        advance(app, Command(resume=answers), config)
    return 0


def resume_command(args: argparse.Namespace) -> str:
    """Write the command that goes on with the review."""
    target = f"{os.path.relpath(__file__)}:graph"
    words = ["resume", target, "--thread", args.thread, "--db", str(args.db)]
    # Inside a virtual environment that is not active, the program has no short name.
    beside = [os.path.relpath(sys.executable), "-m", "towpath.cli"]
    return shlex.join([*(["towpath"] if shutil.which("towpath") else beside), *words])


def parse_args(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=SUMMARY)
    option = parser.add_argument
    option("path", nargs="?", type=Path, default=Path(default_path()), metavar="PATH")
    option("--db", type=Path, default=Path("towpath.db"), help="SQLite file")
    option("--thread", help="name of the review; the same name goes on with it")
    option("--yes", action="store_true", help="keep all findings without asking")
    option("--report", type=Path, default=Path("repo-review.md"), help="Markdown file")
    option("--slow", type=float, default=0.0, metavar="S", help="seconds more per file")
    option("--log", type=Path, help="append the name of every file measured")
    args = parser.parse_args(words)
    args.path = args.path.resolve()
    if not args.path.is_dir():
        parser.error(f"{str(args.path)!r} is not a directory")
    if args.thread is None:
        digest = hashlib.sha256(os.fsencode(args.path)).hexdigest()
        args.thread = f"review-{args.path.name or 'root'}-{digest[:6]}"
    return args


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done, 3 is waiting for an answer."""
    args = parse_args(words)
    # What the reviewed code does wrong is for the report, not for the terminal.
    warnings.simplefilter("ignore", SyntaxWarning)
    with SqliteSaver.from_conn_string(str(args.db)) as saver:
        try:
            return review(graph.compile(checkpointer=saver), args)
        except (KeyboardInterrupt, EOFError):
            print("\nstopped; run the same again, or go on with:")
            print(f"  {resume_command(args)}")
            return 130


if __name__ == "__main__":
    sys.exit(main())
