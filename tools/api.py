"""What users can import, with signatures, as text: a change of it shows in a diff.

    python tools/api.py            prints it
    python tools/api.py --write    rewrites tests/guards/api.txt

A module that needs an extra which is not installed is left out, see `sections`.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "guards" / "api.txt"
MODULES = (
    *("towpath.cache", "towpath.cache.base", "towpath.cache.memory"),
    *("towpath.cache.redis", "towpath.cache.sqlite", "towpath.callbacks"),
    *("towpath.channels", "towpath.chat", "towpath.checkpoint.base"),
    *("towpath.checkpoint.memory", "towpath.checkpoint.postgres"),
    *("towpath.checkpoint.postgres.aio", "towpath.checkpoint.serde"),
    *("towpath.checkpoint.sqlite", "towpath.checkpoint.sqlite.aio", "towpath.config"),
    *("towpath.constants", "towpath.errors", "towpath.func", "towpath.graph"),
    *("towpath.graph.message", "towpath.graph.state", "towpath.importing"),
    *("towpath.managed", "towpath.prebuilt", "towpath.pregel"),
    *("towpath.pregel.remote", "towpath.runtime", "towpath.semantics"),
    *("towpath.store.base", "towpath.store.memory", "towpath.store.postgres"),
    *("towpath.store.sqlite", "towpath.stream", "towpath.testing", "towpath.types"),
    *("towpath.warnings", "towpath"),
)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Made by dataclasses, enums and typing, which differ between Pythons.
MADE = re.compile(r"__(?!init__|call__|enter__|exit__|aenter__|aexit__|iter__|await__)")


def sections() -> dict[str, list[str]]:
    """Return the lines of each module that can be imported here."""
    found: dict[str, list[str]] = {}
    homes: dict[int, str] = {}
    for name in MODULES:
        try:
            module = importlib.import_module(name)
            values = {each: getattr(module, each) for each in names_of(module)}
        except ImportError:
            continue
        found[name] = []
        for each, value in values.items():
            home = homes.get(id(value)) if is_ours(value) else None
            if home is None:
                homes[id(value)] = f"{name}.{each}"
                found[name].extend(shown(each, value))
            else:
                found[name].append(f"{each} = {home}")
    return found


def names_of(module: object) -> list[str]:
    """Return the names that a module offers."""
    offered = getattr(module, "__all__", None)
    if offered is not None:
        return sorted({*offered})
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and is_ours(value)
    )


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("towpath")


def shown(name: str, value: object) -> Iterator[str]:
    """Yield the lines of one name; a class has one for each of its members."""
    if not inspect.isclass(value):
        yield f"{name}{signature(value) if inspect.isroutine(value) else ''}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})"
    for member in sorted({m for cls in ours(value) for m in vars(cls)}):
        if not member.startswith("_") or not MADE.match(member):
            yield from (f"  {line}" for line in shown_member(value, member))


def ours(cls: type) -> list[type]:
    return [each for each in cls.__mro__ if is_ours(each)]


def shown_member(cls: type, name: str) -> Iterator[str]:
    if name.startswith("_") and not name.startswith("__"):
        return
    value = inspect.getattr_static(cls, name)
    if isinstance(value, staticmethod | classmethod):
        yield f"{type(value).__name__} {name}{signature(value.__func__)}"
    elif isinstance(value, property):
        yield f"{name}: property"
    elif inspect.isfunction(value):
        yield f"{name}{signature(value)}"
    elif not inspect.isclass(value) or is_ours(value):
        yield name


class Bare(str):
    """An annotation as it is written."""

    __slots__ = ()
    __repr__ = str.__str__


def bare(annotation: object) -> object:
    return Bare(annotation) if isinstance(annotation, str) else annotation


def signature(value: object) -> str:
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    parameters = [
        one.replace(annotation=bare(one.annotation))
        for one in found.parameters.values()
    ]
    returned = bare(found.return_annotation)
    told = found.replace(parameters=parameters, return_annotation=returned)
    return ADDRESS.sub("", str(told))


def text_of(found: dict[str, list[str]]) -> str:
    """Put the sections into one text."""
    return "\n".join("\n".join((f"[{name}]", *found[name], "")) for name in found)


def kept() -> dict[str, list[str]]:
    """Return the sections as they were written the last time."""
    found: dict[str, list[str]] = {}
    for line in KEPT.read_text("utf-8").splitlines():
        if line.startswith("["):
            lines = found[line[1:-1]] = []
        elif line:
            lines.append(line)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    if "--write" in sys.argv:
        KEPT.write_text(text_of(sections()), "utf-8")
    else:
        print(text_of(sections()))
