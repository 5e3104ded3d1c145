"""Nodes and edges -> Mermaid text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, Protocol

STYLES: Final = {
    "default": "fill:#f2f0ff,line-height:1.2",
    "first": "fill-opacity:0",
    "last": "fill:#bfb6fc",
}
PLAIN: Final = re.compile(r"[\w .,:;/+=?!-]+")
MARKED: Final = ("*", "_", "`")
"""How text begins and ends that Mermaid would take for markdown."""


class Noded(Protocol):
    """What is asked of a node."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def data(self) -> Any: ...
    @property
    def metadata(self) -> dict[str, Any] | None: ...


class Edged(Protocol):
    """What is asked of an edge."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def data(self) -> str | None: ...
    @property
    def conditional(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Look:
    """How a diagram is to look."""

    with_styles: bool
    words: int
    settings: Mapping[str, Any]
    styles: Mapping[str, str]

    @classmethod
    def of(
        cls,
        *,
        with_styles: bool,
        curve: Any,
        colors: Any,
        words: int,
        settings: Mapping[str, Any] | None,
    ) -> Look:
        """Fill in what was not said; enums and objects of langchain's will do."""
        config = {**(settings or {}).get("config", {})}
        flow = {"curve": getattr(curve, "value", curve)}
        config["flowchart"] = {**flow, **config.get("flowchart", {})}
        own = {key: getattr(colors, key, text) for key, text in STYLES.items()}
        return cls(with_styles, words, {**(settings or {}), "config": config}, own)


@dataclass(slots=True)
class Block:
    """The nodes and edges of one subgraph, and the subgraphs in it."""

    nodes: list[Noded] = field(default_factory=list)
    edges: list[Edged] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)

    def at(self, path: Sequence[str]) -> Block:
        block = self
        for name in path:
            block = block.blocks.setdefault(name, Block())
        return block


def mermaid(
    nodes: Iterable[Noded],
    edges: Iterable[Edged],
    look: Look,
    ends: tuple[str | None, str | None],
) -> str:
    """The diagram; `ends` are the ids of the first and the last node."""
    root = Block()
    for node in nodes:
        root.at(node.id.split(":")[:-1]).nodes.append(node)
    for edge in edges:
        root.at(around(edge)).edges.append(edge)
    lines = [*(front(look.settings) if look.with_styles else ()), "graph TD;"]
    lines.extend(inside(root, look, ends))
    if look.with_styles:
        lines.extend(f"\tclassDef {key} {text}" for key, text in look.styles.items())
    return "\n".join(lines) + "\n"


def around(edge: Edged) -> list[str]:
    """The subgraphs that both ends of an edge are in."""
    paths = zip(edge.source.split(":")[:-1], edge.target.split(":")[:-1], strict=False)
    return [name for name, _ in takewhile(lambda pair: pair[0] == pair[1], paths)]


def front(settings: Mapping[str, Any]) -> list[str]:
    """The settings in front of a diagram, as YAML."""

    def written(value: Mapping[str, Any], depth: int) -> Iterable[str]:
        for key, item in value.items():
            if isinstance(item, Mapping):
                yield f"{'  ' * depth}{key}:"
                yield from written(item, depth + 1)
            else:
                text = str(item).lower() if isinstance(item, bool) else str(item)
                quoted = f"'{text}'" if text.startswith("#") else text
                yield f"{'  ' * depth}{key}: {quoted}"

    return ["---", *written(settings, 0), "---"]


def inside(
    block: Block, look: Look, ends: tuple[str | None, str | None]
) -> Iterable[str]:
    """The lines of a block: its nodes, its edges, then the blocks in it."""
    if look.with_styles:
        yield from (f"\t{node_line(node, ends)}" for node in block.nodes)
    yield from (f"\t{edge_line(edge, look.words)}" for edge in block.edges)
    for name, inner in block.blocks.items():
        if lines := list(inside(inner, look, ends)):
            yield from (f"\tsubgraph {safe_id(name)}", *lines, "\tend")


def listed(value: object) -> object:
    """Several values without brackets; anything else as it is."""
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return value


def node_line(node: Noded, ends: tuple[str | None, str | None]) -> str:
    key, text = safe_id(node.id), label(node.name)
    if node.metadata:
        shown = "\n".join(
            f"{name} = {listed(value)}"
            for name, value in node.metadata.items()
            if not isinstance(value, Mapping)
        )
        text = f"{text}<hr/><small><em>{shown}</em></small>"
    if node.id == ends[0]:
        return f"{key}([{text}]):::first"
    if node.id == ends[1]:
        return f"{key}([{text}]):::last"
    return f"{key}({text})"


def label(name: str) -> str:
    """A name as Mermaid shows it without taking any of it for syntax."""
    if not PLAIN.fullmatch(name):
        return '"' + name.replace('"', "#quot;") + '"'
    marked = name.startswith(MARKED) and name.endswith(MARKED)
    return f"<p>{name}</p>" if marked else name


def edge_line(edge: Edged, words: int) -> str:
    source, target = safe_id(edge.source), safe_id(edge.target)
    if not edge.data:
        return f"{source} {'-.->' if edge.conditional else '-->'} {target};"
    text = wrapped(str(edge.data), words)
    if edge.conditional:
        return f"{source} -. &nbsp;{text}&nbsp; .-> {target};"
    return f"{source} -- &nbsp;{text}&nbsp; --> {target};"


def wrapped(text: str, words: int) -> str:
    """A label in lines of so many words."""
    parts = text.split()
    if len(parts) <= words:
        return text
    lines = [" ".join(parts[i : i + words]) for i in range(0, len(parts), words)]
    return "&nbsp<br>&nbsp".join(lines)


def safe_id(id: str) -> str:
    """An id in the letters that Mermaid takes; others as their code."""
    return "".join(
        char
        if (char.isascii() and char.isalnum()) or char in "_-"
        else f"\\{ord(char):x}"
        for char in id
    )
