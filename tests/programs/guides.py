"""What the programs of the guides share: a state, small graphs, errors as results."""

import operator
from importlib import import_module
from typing import Annotated

from typing_extensions import TypedDict

from towpath.testing.api import Api


class Log(TypedDict):
    log: Annotated[list, operator.add]


def tried(call):
    """What a call returns, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def part(lib: Api, home: str, name: str | None = None):
    """A module of the library, or one of its names."""
    module = import_module(f"{lib.package}.{home}")
    return module if name is None else getattr(module, name)


def chained(lib: Api, schema, *nodes, **options):
    """A compiled graph of nodes, each a name and a function, one after the other."""
    graph = lib.StateGraph(schema)
    before = lib.START
    for name, node in nodes:
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph.compile(**options)


def says(name):
    """A node that logs its name, with that name."""
    return name, lambda state: {"log": [name]}
