"""What of `langgraph` a code base uses, and whether Towpath has it.

The files are read, not run: imports, names taken from imported modules, and
the keywords that imported functions and classes are called with. What a method
of an object is called with cannot be seen this way.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

from towpath.compat.cover import Cover
from towpath.compat.foreign import ROOT

By = Literal["towpath", "others", "extra", "nobody"]
SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
DYNAMIC: Final = frozenset({"import_module", "__import__", "patch", "importorskip"})
"""Functions that take the name of a module as text."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place that uses something of `langgraph`."""

    file: str
    line: int
    what: str
    """`langgraph.types.Command`, or `langgraph.graph.StateGraph(retry=)`."""
    by: By
    """Who provides it; "extra": Towpath, with a package that is missing."""
    optional: bool = False
    """Whether the program can do without: under `try`, or for checkers only."""


@dataclass(slots=True)
class Findings:
    """All uses in some files."""

    files: int = 0
    uses: list[Use] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @property
    def uncovered(self) -> list[Use]:
        """What the program needs and nobody provides."""
        return [one for one in self.uses if one.by == "nobody" and not one.optional]


def check(paths: Iterable[Path], theirs: Sequence[str] = ()) -> Findings:
    """Look through files and folders."""
    found = Findings()
    cover = Cover(theirs)
    for path in sources(paths):
        reader = Reader(str(path), cover)
        try:
            reader.visit(ast.parse(path.read_bytes(), str(path)))
        except (SyntaxError, ValueError, OSError, RecursionError) as error:
            found.unreadable.append(f"{path}: {error}")
            continue
        found.files += 1
        found.uses.extend(sorted(reader.uses, key=lambda use: (use.line, use.what)))
    return found


def sources(paths: Iterable[Path]) -> Iterator[Path]:
    """The Python files among, and below, some paths."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for file in sorted(path.rglob("*.py")):
            inner = file.relative_to(path).parts
            if not any(p in SKIPPED or p.startswith(".") for p in inner[:-1]):
                yield file


class Reader(ast.NodeVisitor):
    """Collects the uses in one file."""

    def __init__(self, file: str, cover: Cover) -> None:
        self.file = file
        self.cover = cover
        self.uses: set[Use] = set()
        self.names: dict[str, str] = {}
        """What local names stand for: a dotted path below `langgraph`."""
        self.optional = 0

    def use(self, node: ast.AST, what: str, keyword: str = "") -> None:
        by = self.cover.provider(what, keyword)
        shown = f"{what}({keyword}=)" if keyword else what
        line = getattr(node, "lineno", 0)
        self.uses.add(Use(self.file, line, shown, by, self.optional > 0))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if below(alias.name):
                self.use(node, alias.name)
                self.names[alias.asname or ROOT] = alias.name if alias.asname else ROOT

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or not below(node.module):
            return
        for alias in node.names:
            if alias.name == "*":
                self.use(node, node.module)
                continue
            what = f"{node.module}.{alias.name}"
            self.names[alias.asname or alias.name] = what
            self.use(node, what)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        what = self.path(node)
        if what is None or not self.cover.is_within_modules(what):
            self.generic_visit(node)
        elif not self.cover.is_module(what):
            self.use(node, what)

    def visit_Call(self, node: ast.Call) -> None:
        what = self.path(node.func)
        if what is not None and self.cover.provider(what) == "towpath":
            for word in node.keywords:
                if word.arg and self.cover.provider(what, word.arg) == "nobody":
                    self.use(node, what, word.arg)
        elif called(node.func) in DYNAMIC and node.args:
            name = text_of(node.args[0])
            if below(name):
                self.use(node, name)
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = any(handles_import(handler) for handler in node.handlers)
        self.some(node.body, optional=caught)
        self.some([*node.handlers, *node.orelse, *node.finalbody], optional=False)

    def visit_If(self, node: ast.If) -> None:
        checked = called(node.test) == "TYPE_CHECKING"
        self.visit(node.test)
        self.some(node.body, optional=checked)
        self.some(node.orelse, optional=False)

    def some(self, nodes: Iterable[ast.AST], *, optional: bool) -> None:
        self.optional += optional
        for node in nodes:
            self.visit(node)
        self.optional -= optional

    def path(self, node: ast.AST) -> str | None:
        """The dotted path that an expression stands for, if it is the peer's."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None


def below(name: str) -> bool:
    return name == ROOT or name.startswith(f"{ROOT}.")


def called(node: ast.AST | None) -> str:
    """The last word of a name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.AST) -> str:
    """The text that an expression is, or none."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def handles_import(handler: ast.ExceptHandler) -> bool:
    """Whether an `except` would take a failed import."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    taken = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    return any(kind is None or called(kind) in taken for kind in kinds)


def report(found: Findings, *, as_json: bool) -> str:
    """The findings for people, or for programs."""
    if as_json:
        told = {
            "files": found.files,
            "uncovered": [asdict(use) for use in found.uncovered],
            "uses": [asdict(use) for use in found.uses],
            "unreadable": found.unreadable,
        }
        return json.dumps(told, indent=2)
    notes = {"nobody": "not covered", "extra": "needs an extra of towpath"}
    lines = [
        f"{use.file}:{use.line}: {use.what}: {notes[use.by]}"
        + (" (optional)" if use.optional else "")
        for use in found.uses
        if use.by in notes
    ]
    lines += [f"{text} (not read)" for text in found.unreadable]
    counted = {
        by: len({use.what for use in found.uses if use.by == by})
        for by in ("towpath", "others", "extra")
    }
    missing = len({use.what for use in found.uncovered})
    unread = f"; {len(found.unreadable)} files not read" if found.unreadable else ""
    lines.append(
        f"{found.files} files: {counted['towpath'] + counted['extra']} names by "
        f"Towpath, {counted['others']} by other packages, {missing} not covered{unread}"
    )
    return "\n".join(lines)
