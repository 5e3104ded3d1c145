"""Find the graph that a TARGET names, and give it a place to keep its state.

A target is `module:attribute` or `path.py:attribute`. The attribute may be a
compiled graph, a builder, or a function that returns one of them, which takes
nothing or a config; it may be left out when the module holds one graph only. A
project's file may give a target a short name. Code of the target runs while it
loads, so its errors are told apart from a name that is wrong.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from towpath.cli.problem import Problem, nearest
from towpath.cli.project import current_project

COMPAT: Final = (
    "write `compat = true` into towpath.toml: `import langgraph` then means Towpath"
)


class TargetError(Problem):
    """The code of the target failed while it was loaded; the cause says how."""

    exit_code = 1


def load_graph(target: str, config: Mapping[str, Any] | None = None) -> Any:
    """Return the builder or compiled graph that a target names.

    `config` is for a function that builds the graph and asks for one.
    """
    target = full_name(target)
    place, _, attribute = target.rpartition(":")
    if not place or place.endswith(("\\", "/")) or attribute.endswith(".py"):
        place, attribute = target, ""
    module = load_module(place)
    found = lookup(module, place, attribute or only_graph(module, place))
    if isinstance(found, type):
        raise Problem(
            f"{target!r} is a class, not a graph",
            hint=nearest(attribute, graphs_in(module)),
        )
    graph = call_factory(found, target, config or {}) if callable(found) else found
    if not (is_compiled(graph) or is_builder(graph)):
        raise Problem(
            f"{target!r} is {type(graph).__name__}, not a graph",
            hint="name a StateGraph, a compiled graph, or a function returning one",
        )
    if is_peers(graph):
        raise Problem(
            f"{target!r} is a graph of LangGraph's, which does not run here",
            hint=COMPAT,
        )
    return graph


def full_name(target: str) -> str:
    """Return the target that a project's name for it stands for."""
    graphs = current_project().graphs
    if target in graphs:
        return graphs[target]
    is_word = target.isidentifier() or target.replace("-", "_").isidentifier()
    if graphs and is_word and importlib.util.find_spec(target) is None:
        raise Problem(
            f"the project names no graph {target!r}", hint=nearest(target, graphs)
        )
    return target


def is_compiled(found: object) -> bool:
    """Tell a graph that can run."""
    return all(hasattr(found, verb) for verb in ("astream", "aget_state", "copy"))


def is_builder(found: object) -> bool:
    """Tell a graph that can be compiled."""
    return hasattr(found, "compile") and hasattr(found, "add_node")


def is_peers(found: object) -> bool:
    """Tell a graph that was made with the peer installed beside Towpath."""
    names = {kind.__module__.partition(".")[0] for kind in type(found).__mro__}
    return "langgraph" in names and "towpath" not in names


def load_module(place: str) -> ModuleType:
    """Import a module by name, or by the path of its file."""
    is_path = place.endswith(".py") or "/" in place
    try:
        return load_file(Path(place)) if is_path else load_name(place)
    except Problem:
        raise
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"{place!r} cannot be loaded: {type(error).__name__}: {error}",
            hint=load_hint(error),
        ) from error


def load_hint(error: BaseException) -> str:
    """Say how to get on with a module that cannot be loaded."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and missing.partition(".")[0] == "langgraph":
        return COMPAT
    return "--debug shows the traceback"


def load_name(name: str) -> ModuleType:
    """Import by name, looking into the current folder first as `python -m` does."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        hint = nearest(name, (path.stem for path in Path.cwd().glob("*.py")))
        raise Problem(f"there is no module {error.name!r}", hint=hint) from error


def load_file(path: Path) -> ModuleType:
    """Import a file, which sees its own folder first, as a program does."""
    if not path.is_file():
        near = (str(file) for file in path.parent.glob("*.py"))
        raise Problem(f"there is no file {str(path)!r}", hint=nearest(str(path), near))
    path = path.resolve()
    name = path.stem
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
        name = f"{name}_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Schemas resolve their annotations through the module's entry here.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def graphs_in(module: ModuleType) -> list[str]:
    """Name the graphs that a module holds."""
    return [
        name
        for name, value in vars(module).items()
        if not isinstance(value, type) and (is_compiled(value) or is_builder(value))
    ]


def only_graph(module: ModuleType, place: str) -> str:
    """Name the one graph of a module."""
    names = graphs_in(module)
    if len(names) != 1:
        which = ", ".join(repr(f"{place}:{name}") for name in names) or "none"
        raise Problem(
            f"{place!r} does not say which graph: it holds {which}",
            hint=f"write the target as {place}:NAME",
        )
    return names[0]


def lookup(module: ModuleType, place: str, attribute: str) -> Any:
    """Return an attribute, dotted or not, of a module."""
    try:
        return attrgetter(attribute)(module)
    except AttributeError:
        known = graphs_in(module) or [n for n in vars(module) if n[0] != "_"]
        hint = nearest(attribute, known)
        raise Problem(f"{place!r} has no {attribute!r}", hint=hint) from None


def call_factory(factory: Any, target: str, config: Mapping[str, Any]) -> Any:
    """Call a function that builds the graph; a graph itself is returned as it is."""
    if is_compiled(factory) or is_builder(factory):
        return factory
    given = wanted(factory, target, config)
    try:
        made = factory(*given)
        return asyncio.run(made) if inspect.iscoroutine(made) else made
    except Exception as error:
        raise TargetError(
            f"{target!r} failed to build the graph: {type(error).__name__}: {error}",
            hint="--debug shows the traceback",
        ) from error


def wanted(
    factory: Any, target: str, config: Mapping[str, Any]
) -> tuple[Mapping[str, Any], ...]:
    """Return what a function that builds a graph is called with."""
    signature = inspect.signature(factory)
    needed = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if not needed:
        return ()
    if len(needed) == 1 and takes_config(needed[0]):
        return (config,)
    raise Problem(
        f"{target!r} takes parameters, so it cannot build the graph: {signature}",
        hint="name a graph, or a function that needs nothing, or only a `config`",
    )


def takes_config(parameter: inspect.Parameter) -> bool:
    """Tell a parameter for the config by its name or annotation."""
    if parameter.kind is parameter.KEYWORD_ONLY:
        return False
    kind = parameter.annotation
    said = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    return parameter.name == "config" or said.endswith("RunnableConfig")


def compiled(graph: Any, **options: Any) -> Any:
    """Return a graph that can run: itself, or what its builder makes."""
    if not is_builder(graph):
        return graph
    try:
        return graph.compile(**options)
    except Exception as error:
        raise TargetError(
            f"the graph cannot be built: {type(error).__name__}: {error}"
        ) from error


def with_saver(graph: Any, saver: Any, *, replace: bool) -> Any:
    """Return the graph compiled to keep its state in `saver`.

    A checkpointer of its own stays, unless another one was asked for by name.
    """
    if is_builder(graph):
        return compiled(graph, checkpointer=saver)
    own = getattr(graph, "checkpointer", None)
    if own is None or isinstance(own, bool) or replace:
        return graph.copy(update={"checkpointer": saver})
    return graph
