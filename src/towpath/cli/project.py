"""What a project says once, so that no command line has to.

`towpath.toml`, the table `[tool.towpath]` of a pyproject.toml, and a
`langgraph.json` are looked for in the current folder and those above it. Files of
one folder are taken together; the first of them that says something counts. What
they name is meant from where they are.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import click

from towpath.cli.problem import Problem, nearest
from towpath.cli.storage import is_server

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Project:
    """The settings of a project; those that nobody made are None or empty."""

    folder: Path = field(default_factory=Path.cwd)
    files: tuple[Path, ...] = ()
    db: str | None = None
    target: str | None = None
    thread: str | None = None
    durability: str | None = None
    graphs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    config: Table = field(default_factory=dict)
    compat: bool | None = None
    """Whether `import langgraph` is to mean Towpath."""

    def defaults(self) -> dict[str, str]:
        """Return what stands for options and arguments that are not given."""
        one = next(iter(self.graphs)) if len(self.graphs) == 1 else None
        known = {
            "db": self.db,
            "target": self.target or one,
            "thread": self.thread,
            "durability": self.durability,
        }
        return {name: value for name, value in known.items() if value is not None}

    def enter(self) -> None:
        """Set the environment, where it is not set, and what imports find."""
        for name, value in self.env.items():
            os.environ.setdefault(name, value)
        for place in reversed(self.path):
            if place not in sys.path:
                sys.path.insert(0, place)
        if self.compat:
            importlib.import_module("towpath.compat").install()

    def under(self, other: Project) -> Project:
        """Fill in what this one leaves out with what another says."""
        names = ("db", "target", "thread", "durability", "graphs", "env", "config")
        filled = {name: getattr(self, name) or getattr(other, name) for name in names}
        filled["compat"] = other.compat if self.compat is None else self.compat
        files, path = self.files + other.files, self.path + other.path
        return replace(self, files=files, path=path, **filled)


def current_project() -> Project:
    """Return the project of the running command."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    return found if isinstance(found, Project) else Project()


def find_project(start: Path | None = None) -> Project:
    """Read the settings of the nearest folder that has some."""
    here = start or Path.cwd()
    for folder in (here, *here.parents):
        if folder != here and not is_ours(folder):
            break
        found = [project for project in projects_in(folder) if project is not None]
        if found:
            first, *others = found
            for other in others:
                first = first.under(other)
            return first
    return Project(here)


def is_ours(folder: Path) -> bool:
    """Tell a folder of this user's from one in which others may leave files.

    A project's file names code that runs: one in /tmp must not do so for all below.
    """
    if not hasattr(os, "getuid"):  # Windows
        return True
    found = folder.stat()
    return found.st_uid in (os.getuid(), 0) and not found.st_mode & stat.S_IWOTH


def projects_in(folder: Path) -> Iterator[Project | None]:
    """Read the files of one folder, the one that counts most first."""
    own = read(folder / "towpath.toml", tomllib.loads)
    if own is not None:
        yield of_towpath(folder / "towpath.toml", own, "")
    shared = read(folder / "pyproject.toml", tomllib.loads) or {}
    table = shared.get("tool", {}).get("towpath")
    if table is not None:
        yield of_towpath(folder / "pyproject.toml", table, "tool.towpath.")
    peer = read(folder / "langgraph.json", json.loads)
    if peer is not None:
        yield of_langgraph(folder / "langgraph.json", peer)


def read(file: Path, parse: Callable[[str], Any]) -> dict[str, Any] | None:
    """Read a file of settings, if it is there."""
    if not file.is_file():
        return None
    try:
        table = parse(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # TOML, JSON and UTF-8 errors are such
        raise Problem(f"{shown(file)} cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise Problem(f"{shown(file)} holds no table of settings")
    return table


def shown(file: Path) -> str:
    """Write a path as somebody in the current folder would."""
    return os.path.relpath(file)


KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "db": str,
    "target": str,
    "thread": str,
    "durability": str,
    "graphs": dict,
    "env": (str, dict),
    "path": (str, list),
    "config": dict,
    "compat": bool,
}
WORDS: Final[Mapping[type | tuple[type, ...], str]] = {
    str: "a text",
    bool: "true or false",
    dict: "a table",
    (str, dict): "the name of a file, or a table",
    (str, list): "a folder, or a list of them",
}


def of_towpath(file: Path, table: Table, prefix: str) -> Project:
    """Take settings in our own words."""
    for name, value in table.items():
        if name not in KINDS:
            raise Problem(
                f"{shown(file)}: there is no setting {prefix + name!r}",
                hint=nearest(name, KINDS),
            )
        if not isinstance(value, KINDS[name]):
            raise Problem(
                f"{shown(file)}: {prefix}{name} is {WORDS[KINDS[name]]}, not {value!r}"
            )
    folder = file.parent
    graphs = {
        name: text(file, name, to) for name, to in table.get("graphs", {}).items()
    }
    target = table.get("target")
    places = table.get("path", [])
    return Project(
        folder,
        (file,),
        db=place_of_db(folder, table.get("db")),
        target=target if target is None or target in graphs else at(folder, target),
        thread=table.get("thread"),
        durability=durability(file, table.get("durability")),
        graphs={name: at(folder, to) for name, to in graphs.items()},
        env=environment(file, table.get("env", {})),
        path=tuple(
            str((folder / one).resolve())
            for one in ["", *([places] if isinstance(places, str) else places)]
        ),
        config=table.get("config", {}),
        compat=table.get("compat"),
    )


def of_langgraph(file: Path, table: Table) -> Project:
    """Take what a `langgraph.json` says about running graphs here."""
    graphs = {}
    for name, given in (table.get("graphs") or {}).items():
        path = given.get("path") if isinstance(given, dict) else given
        graphs[name] = at(file.parent, text(file, f"graphs.{name}", path))
    places: list[str] = []
    for one in table.get("dependencies") or ():
        # Others are packages, which are installed by those who install.
        if isinstance(one, str) and one.startswith("."):
            places += import_places((file.parent / one).resolve())
    return Project(
        file.parent,
        (file,),
        graphs=graphs,
        env=environment(file, table.get("env") or {}),
        path=tuple(places),
        # Where both are installed, somebody has to say which one is meant.
        compat=None if find_spec("langgraph") else True,
    )


def import_places(folder: Path) -> list[str]:
    """Return where the modules of a local dependency are imported from."""
    places = [folder]
    if (folder / "src").is_dir():
        places.append(folder / "src")
    if (folder / "__init__.py").is_file():
        places.append(folder.parent)
    return [str(place) for place in places]


def text(file: Path, name: str, value: object) -> str:
    """Refuse a setting that is no text."""
    if not isinstance(value, str):
        raise Problem(f"{shown(file)}: {name} is a text, not {value!r}")
    return value


def durability(file: Path, value: str | None) -> str | None:
    """Refuse what is no durability."""
    known = ("sync", "async", "exit")
    if value is not None and value not in known:
        hint = nearest(value, known)
        raise Problem(f"{shown(file)}: there is no durability {value!r}", hint=hint)
    return value


def at(folder: Path, target: str) -> str:
    """Write a target as it is meant from the current folder."""
    place, colon, attribute = target.rpartition(":")
    if not place or attribute.endswith(".py"):
        place, colon, attribute = target, "", ""
    if not (place.endswith(".py") or "/" in place):
        return target
    return f"{os.path.relpath(folder / place)}{colon}{attribute}"


def place_of_db(folder: Path, db: str | None) -> str | None:
    """Write the place of a database as it is meant from the current folder."""
    if db is None or is_server(db):
        return db
    return os.path.relpath(folder / Path(db).expanduser())


def environment(file: Path, given: str | Table) -> dict[str, str]:
    """Return the variables that a file of settings sets, or another it names."""
    if isinstance(given, str):
        return read_env(file.parent / given)
    if not isinstance(given, Mapping):
        raise Problem(f"{shown(file)}: env is the name of a file, or a table")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
    }


def read_env(file: Path) -> dict[str, str]:
    """Read `NAME=value` lines, as in a `.env` file."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Problem(f"env: cannot read {shown(file)}: {reason}") from error
    found = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = unquoted(value.strip())
    return found


def unquoted(value: str) -> str:
    """Take the quotes off a value, or the remark behind one without quotes."""
    if len(value) > 1 and value[0] in "'\"" and (end := value.find(value[0], 1)) > 0:
        return value[1:end]
    return value.partition(" #")[0].rstrip()
