"""Every check of a graph's wiring, and every message about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from towpath.constants import END, GRAPH, START, TOLD
from towpath.errors import InvalidGraphError, nearest
from towpath.graph.blueprint import Blueprint
from towpath.schema import class_channels
from towpath.schema.hints import is_root


def validate(blueprint: Blueprint, interrupts: Iterable[str] = ()) -> None:
    """Refuse a graph that could not run as it was meant.

    Raises:
        InvalidGraphError: says what is wrong, where, and the nearest name.
    """
    nodes = blueprint.nodes
    check_sources(blueprint)
    check_targets(blueprint)
    check_entry(blueprint)
    for name in interrupts:
        if name not in nodes:
            raise InvalidGraphError(
                f"Interrupt node `{name}` not found", hint=nearest(name, nodes)
            )
    check_schemas(blueprint)
    check_migrations(blueprint)


def edge_hint(start: object, end: object) -> str:
    """Say how to write an edge whose ends are no names."""
    if isinstance(end, list | tuple | set):
        return "add an edge for each of them"
    named = [one.__name__ for one in (start, end) if hasattr(one, "__name__")]
    example = repr(named[0]) if named else "by default that of its function"
    return f"a node's name is a string: {example}"


def check_migrations(blueprint: Blueprint) -> None:
    """What keeps its state under a node's name cannot follow to another name."""
    for migration in blueprint.migrations.values():
        for old, new in migration.nodes.items():
            node = blueprint.nodes.get(new)
            graph = None if node is None else node.action.graph
            if graph is not None and graph.checkpointer is True:
                raise InvalidGraphError(
                    f"a migration renames `{old}` to `{new}`, a subgraph that keeps "
                    "its state across calls under the name of its node",
                    hint=f"let the node keep the name `{old}`",
                )


def check_sources(blueprint: Blueprint) -> None:
    known = {*blueprint.nodes, START}
    for source in sorted(all_sources(blueprint) - known):
        raise InvalidGraphError(
            f"Found edge starting at unknown node '{source}'",
            hint=nearest(source, known),
        )


def check_targets(blueprint: Blueprint) -> None:
    known = {*blueprint.nodes, END}
    lost = {edge for edge in blueprint.edges if edge[1] not in known}
    for source, target in sorted(lost):
        check_target(target, f"edge from `{source}`", known)
    for sources, target in sorted(blueprint.waiting_edges):
        check_target(target, f"join of {', '.join(f'`{s}`' for s in sources)}", known)
    for source, several in blueprint.branches.items():
        for branch in several.values():
            for target in (branch.ends or {}).values():
                check_target(target, f"branch `{branch.name}` of `{source}`", known)
    for name, node in blueprint.nodes.items():
        for target in node.ends:
            check_target(target, f"node `{name}`, which declares that it", known)


def check_target(target: str, source: str, known: Collection[str]) -> None:
    if target not in known:
        raise InvalidGraphError(
            f"{source} goes to unknown node `{target}`", hint=nearest(target, known)
        )


def check_entry(blueprint: Blueprint) -> None:
    if START not in all_sources(blueprint):
        raise InvalidGraphError(
            "Graph must have an entrypoint: nothing leads from START to a node",
            hint='add one: add_edge(START, "first_node")',
        )


def all_sources(blueprint: Blueprint) -> set[str]:
    sources = {source for source, _ in blueprint.edges}
    sources.update(s for several, _ in blueprint.waiting_edges for s in several)
    sources.update(source for source, several in blueprint.branches.items() if several)
    return sources


def check_schemas(blueprint: Blueprint) -> None:
    """Managed values stay inside, and a bare value has no keys beside it.

    The engine makes managed values, so nobody can put them in or take them out.
    """
    for what, schema in (
        ("input", blueprint.input_schema),
        ("output", blueprint.output_schema),
    ):
        if schema is blueprint.state_schema:
            continue
        managed = class_channels(schema).managed
        if managed:
            names = ", ".join(f"`{key}`" for key in managed)
            raise InvalidGraphError(
                f"the {what} schema has managed values: {names}",
                hint="declare them in the state schema only",
            )
    schemas = blueprint.all_schemas()
    for key in (GRAPH, TOLD):
        if any(key in class_channels(schema).channels for schema in schemas):
            raise InvalidGraphError(
                f"a schema declares key `{key}`, which checkpoints use for themselves",
                hint="give the key another name",
            )
    kinds = {is_root(schema) for schema in schemas}
    if len(kinds) > 1:
        raise InvalidGraphError(
            "the graph mixes a schema of keys with one that is a bare value",
            hint="use schemas of one kind for state, input, output and nodes",
        )
