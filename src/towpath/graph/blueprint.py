"""What has been added to a graph so far: the data of a builder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from towpath.graph.nodes import NodeDefaults, StateNodeSpec
from towpath.migration import Migration
from towpath.plan import Action

Join = tuple[tuple[str, ...], str]


@dataclass(slots=True)
class Branch:
    """One conditional edge as it was added; `ends` None means any node."""

    name: str
    path: Action
    ends: dict[Hashable, str] | None
    input_schema: Any = None


@dataclass(slots=True)
class Blueprint:
    """Nodes, edges and schemas; plain data that validation and compiling read."""

    state_schema: Any
    input_schema: Any
    output_schema: Any
    context_schema: Any
    version: str | None = None
    migrations: Mapping[str | None, Migration] = field(default_factory=dict)
    nodes: dict[str, StateNodeSpec] = field(default_factory=dict)
    edges: set[tuple[str, str]] = field(default_factory=set)
    waiting_edges: set[Join] = field(default_factory=set)
    join_policies: dict[Join, str] = field(default_factory=dict)
    branches: defaultdict[str, dict[str, Branch]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    defaults: NodeDefaults = field(default_factory=NodeDefaults)

    def all_schemas(self) -> list[Any]:
        """Every schema of the graph, each once, the state's first."""
        schemas = [self.state_schema, self.input_schema, self.output_schema]
        schemas.extend(n.input_schema for n in self.nodes.values())
        schemas.extend(
            branch.input_schema
            for several in self.branches.values()
            for branch in several.values()
        )
        return list({id(s): s for s in schemas if s is not None}.values())
