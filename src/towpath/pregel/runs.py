"""What a caller asks -> a run: its request, its scope, its program.

A graph that is called while a node runs is a subgraph of it: it runs in the
task's namespace, under its limits and its saver, streams through it, and
passes up what it asks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from towpath.call.inherit import install
from towpath.call.scope import RunScope, TaskContext
from towpath.constants import CONF, NS_SEP
from towpath.context import current
from towpath.errors import (
    ColourError,
    InvalidUpdateError,
    NoCheckpointerError,
    UnsavedResumeError,
    nearest,
)
from towpath.given import node_names
from towpath.kernel.commands import Program
from towpath.kernel.request import Chunk, Request, silence
from towpath.kernel.run import Outcome, run
from towpath.plan import Plan
from towpath.pregel.chunks import Format, modes_of, set_of
from towpath.pregel.claims import claim_thread
from towpath.pregel.config import InvalidConfigError, NotAnOptionError, limit_of, merge
from towpath.pregel.debug import EXCLUDED_METADATA_KEYS
from towpath.pregel.lifecycle import Listeners, listeners_of
from towpath.pregel.ports import Graph, bump_of, surrounding, trace_of
from towpath.runtime import RunControl
from towpath.schema import shape_of
from towpath.step.tasks import Task, lasting_ns
from towpath.types import Command
from towpath.warnings import LangGraphDeprecatedSinceV10, TowpathWarning, warn_user

SERIAL: Final = itertools.count(1)
PROCESS: Final = f"{id(SERIAL):x}"


@dataclass(slots=True)
class Options:
    """The keywords of `invoke` and `stream`, as one value."""

    context: Any = None
    stream_mode: str | Sequence[str] | None = None
    print_mode: str | Sequence[str] = ()
    output_keys: str | Sequence[str] | None = None
    interrupt_before: str | Sequence[str] | None = None
    interrupt_after: str | Sequence[str] | None = None
    durability: Any = None
    control: RunControl | None = None
    subgraphs: bool = False
    debug: bool | None = None
    version: Any = "v1"
    during: bool | None = None
    message_events: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            InvalidConfigError: an option that does not exist (TP-610).
        """
        if self.durability is not None:
            choice("durability", self.durability, ("sync", "async", "exit"))
        elif self.during is not None:
            self.durability = "async" if self.during else "exit"
        if self.version != "v1":
            choice("version", self.version, ("v1", "v2"))
        if self.control is not None and not hasattr(self.control, "request_drain"):
            raise NotAnOptionError(f"control is a RunControl, not {self.control!r}")
        keys = self.output_keys
        if not (keys is None or isinstance(keys, Iterable)):
            raise NotAnOptionError(f"output_keys are names of keys, not {keys!r}")


def extras(where: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a verb takes beyond those it names.

    Raises:
        TypeError: it takes none of that name.
    """
    taken = dict(given)
    if "checkpoint_during" in taken:
        during = taken.pop("checkpoint_during")
        warn_user(
            "`checkpoint_during` is deprecated. Please use `durability` instead.",
            LangGraphDeprecatedSinceV10,
        )
        taken["during"] = during
    for name in taken:
        if name not in ("subgraphs", "debug", "during"):
            near = nearest(name, Options.__slots__).strip()
            raise TypeError(
                f"{where}() got an unexpected keyword argument {name!r}. {near}".strip()
            )
    return taken


def choice(name: str, given: Any, known: tuple[Any, ...]) -> None:
    if given not in known:
        raise InvalidConfigError(
            f"there is no {name} {given!r}",
            hint=nearest(given, known) or f"one of {known}",
        )


@dataclass(slots=True)
class Run:
    """One call of a graph, ready to be driven."""

    plan: Plan
    request: Request
    scope: RunScope
    format: Format
    parent: TaskContext | None

    def program(self) -> Program[Outcome]:
        program, trace = run(self.plan, self.request), self.scope.trace
        return program if trace is None else trace.watched(program, self.scope)


def prepare_run(
    graph: Graph,
    input: Any,
    config: Mapping[str, Any] | None,
    options: Options,
    *,
    streams: bool,
) -> Run:
    """Work out everything about one call before it starts."""
    install()
    parent = current.get()
    parent = parent if isinstance(parent, TaskContext) else None
    merged = around(parent)
    if graph.config or config or (merged and parent is None):
        merged = merge(graph.config, merged, config)
    plan = graph.plan_of_graph
    listeners = listeners_of(merged) if parent is None and merged else None
    format_ = format_of(graph, options, listeners, streams=streams)
    request = Request(input, output_keys(graph, options, streams=streams))
    request.modes = format_.heard
    request.before = stops(options.interrupt_before, plan.interrupt_before, plan)
    request.after = stops(options.interrupt_after, plan.interrupt_after, plan)
    request.limit = limit_of(merged, plan.semantics.recursion_limit)
    conf = merged.get(CONF)
    stored_how = options.durability or (conf and conf.get(DURABILITY))
    request.durability = stored_how or "async"
    request.control = options.control
    request.cache = graph.cache
    request.step_timeout = graph.step_timeout
    if parent is None:
        place_root(graph, request, merged, told=options.durability is not None)
    else:
        place_nested(graph, request, parent, config, options)
    if request.control is None:
        request.control = RunControl()
    if request.saver is not None:
        claim_thread(request, parent.scope if parent else None, plan.semantics)
        request.bump = bump_of(request.saver)
        around_it = {} if parent is None else parent.scope.req.metadata
        request.metadata = {**around_it, **stored_metadata(plan, merged)}
    if request.modes & TASK_MODES:
        request.labels = labels_of(graph, config, merged, parent)
    scope = scope_of(graph, options, request, merged, format_, parent)
    return Run(plan, request, scope, format_, parent)


def scope_of(
    graph: Graph,
    options: Options,
    request: Request,
    config: Mapping[str, Any],
    format_: Format,
    parent: TaskContext | None,
) -> RunScope:
    """What the tasks of the run share."""
    scope = RunScope(graph.plan_of_graph, request, config, store=graph.store)
    if options.context is not None:
        scope.context = context_of(graph, options.context)
    if format_ is not SILENT:
        format_.own = request.path
        scope.listen(live=needs_threads(graph, format_), inner=format_.passed)
        scope.message_events = options.message_events
    if parent is not None:
        scope.hang_under(parent.scope)
    if options.debug is not None:
        scope.debug = options.debug
        scope.bare = not options.debug
    trace = trace_of(scope)
    if trace is not None:
        scope.trace, scope.bare, request.watched = trace, False, True
    return scope


def labels_of(
    graph: Graph,
    config: Mapping[str, Any] | None,
    merged: Mapping[str, Any],
    parent: TaskContext | None,
) -> dict[str, Any]:
    """Metadata and tags of a run; those of the task around it come first."""
    if parent is None:
        labels = dict(merged.get("metadata") or {})
    else:
        labels = {**parent.scope.req.labels, **parent.task.spec.metadata}
        for given in (graph.config, config):
            labels.update((given or {}).get("metadata") or {})
    if merged.get("tags"):
        labels["tags"] = list(merged["tags"])
    return labels


TASK_MODES: Final = frozenset({"tasks", "debug"})
IDLE_DURABILITY: Final = "`durability` has no effect without a checkpointer"
DURABILITY: Final = "__pregel_durability"
SILENT: Final = Format(frozenset(), single=True, subgraphs=False, version="v1")
"""What a caller wants who only waits for the end; shared, and never changed."""


def around(parent: TaskContext | None) -> Mapping[str, Any]:
    """The config of whatever this call was made in: a task, or a runnable."""
    outer = surrounding()
    if parent is None:
        return outer
    scope = parent.scope
    if scope.handed_down is None:
        scope.handed_down = inherited(scope.config) if scope.config else {}
    if not outer:
        return scope.handed_down
    return {**scope.handed_down, "callbacks": outer.get("callbacks")}


def inherited(outer: Mapping[str, Any]) -> dict[str, Any]:
    """What a nested run takes from the config of the run around it."""
    config = dict(outer)
    config.pop("run_id", None)
    config.pop("run_name", None)
    metadata = config.get("metadata")
    if metadata:
        config["metadata"] = dict(metadata)
    conf = dict(config.get(CONF) or {})
    for key in ("checkpoint_id", "checkpoint_ns", "checkpoint_map"):
        conf.pop(key, None)
    config[CONF] = conf
    return config


def format_of(
    graph: Graph, options: Options, listeners: Listeners | None, *, streams: bool
) -> Format:
    """What the caller listens to."""
    mode, plan = options.stream_mode, graph.plan_of_graph
    prints = options.print_mode
    if options.debug or plan.debug:
        prints = plan.semantics.debug_prints or prints
    if not (streams or listeners or prints or options.version == "v2"):
        return SILENT
    if not streams:
        asked: tuple[str, ...] = ()
    else:
        asked = modes_of(graph.stream_mode if mode is None else mode)
    single = mode is None or isinstance(mode, str)
    schema = plan.output_schema
    typed = options.version == "v2" and schema is not None
    return Format(
        set_of(asked),
        single,
        options.subgraphs,
        options.version,
        set_of(modes_of(prints)),
        set_of(plan.semantics.inner_modes),
        listeners=listeners,
        make=shape_of(schema).make if typed else None,
    )


def output_keys(
    graph: Graph, options: Options, *, streams: bool
) -> tuple[str, ...] | str:
    """The keys that values and updates show.

    Raises:
        InvalidUpdateError: a key that no schema declares.
    """
    plan = graph.plan_of_graph
    keys = options.output_keys
    if keys is None:
        return plan.shown if streams or plan.root else plan.output_keys
    several = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in several:
        if key not in plan.key_set:
            raise InvalidUpdateError(
                f"output_keys names `{key}`, which no schema declares",
                hint=nearest(key, plan.keys),
            )
    return keys if isinstance(keys, str) else several


def stops(
    asked: str | Sequence[str] | None, own: frozenset[str] | str, plan: Plan
) -> frozenset[str] | str:
    """Where static breakpoints stop this run."""
    if asked is None:
        return own
    if asked == "*":
        return "*"
    names = frozenset(node_names("a breakpoint", asked))
    for name in names:
        if name not in plan.nodes:
            raise InvalidUpdateError(
                f"a breakpoint names `{name}`, which is no node of this graph",
                hint=nearest(name, plan.nodes),
            )
    return names


def place_root(
    graph: Graph, request: Request, config: Mapping[str, Any], *, told: bool
) -> None:
    """Where a run that nobody is around of keeps its state.

    `told`: the caller said how durable that is to be.

    Raises:
        NoCheckpointerError: checkpointer=True, a breakpoint that nothing could
            be resumed from, or no thread to keep the state under.
    """
    request.ns = ""
    conf = config.get(CONF) or {}
    saver = (conf and conf.get("__pregel_checkpointer")) or graph.checkpointer
    if saver is True:
        raise NoCheckpointerError(
            "checkpointer=True only means something for a subgraph",
            hint="give the outer graph a checkpointer",
        )
    if not saver:
        refuse_answers(request)
        if told:
            warn_user(IDLE_DURABILITY, TowpathWarning)
        request.origin = f"{PROCESS}-{next(SERIAL)}"
        refuse_unsaved_stops(graph, request)
        return
    thread = conf.get("thread_id")
    if thread is None:
        raise NoCheckpointerError(
            "the graph has a checkpointer, but the config names no thread: "
            "Checkpointer requires one or more of the following 'configurable' "
            "keys: thread_id, checkpoint_ns, checkpoint_id",
            hint="pass config={'configurable': {'thread_id': '...'}}",
        )
    request.saver = saver
    request.thread_id = str(thread)
    ns, pinned = conf.get("checkpoint_ns") or "", conf.get("checkpoint_id")
    if not ns:
        request.pinned = pinned
        return
    # A subgraph's checkpoint: the whole graph runs again from there.
    forks = {**(conf.get("checkpoint_map") or {}), **({ns: pinned} if pinned else {})}
    request.pinned = forks.pop("", None)
    request.forks = forks


def refuse_answers(request: Request) -> None:
    """Refuse an answer where nothing could have been asked.

    Raises:
        UnsavedResumeError: says so (TP-601).
    """
    given = request.input
    if isinstance(given, Command) and given.has_resume:
        raise UnsavedResumeError(
            "Command(resume=...) needs a checkpointer: without one no question is kept",
            hint="compile(checkpointer=InMemorySaver()) or a durable one",
        )


def refuse_unsaved_stops(graph: Graph, request: Request) -> None:
    """A breakpoint without a checkpointer stops where nothing can go on."""
    strict = graph.plan_of_graph.semantics.unsaved_prompts == "error"
    if strict and (request.before or request.after):
        raise NoCheckpointerError(
            "interrupt_before and interrupt_after need a checkpointer, or the run "
            "could not be resumed",
            hint="compile(checkpointer=InMemorySaver()) or a durable one",
        )


def place_nested(
    graph: Graph,
    request: Request,
    parent: TaskContext,
    config: Mapping[str, Any] | None,
    options: Options,
) -> None:
    """Where a run inside a task keeps its state, and what it takes over."""
    outer, task = parent.scope.req, parent.task
    own = (config or {}).get(CONF) or {}
    request.around = task
    request.durability = options.durability or outer.durability
    request.nested = True
    request.reports = reports_writes(graph, parent)
    request.modes |= parent.scope.inner_modes
    request.control = request.control or outer.control
    request.cache = request.cache or outer.cache
    request.rewound = outer.rewound
    request.fork_base, request.fork_id = outer.fork_base, outer.fork_id
    request.forks = outer.forks
    request.answers = outer.answers
    request.early = outer.early
    request.thread_id = outer.thread_id
    number_call(graph, request, parent)
    if outer.forks:
        request.pinned = outer.forks.get(request.ns)
    if graph.plan_of_graph.semantics.shared_limit and outer.state is not None:
        left = outer.stop - outer.spent - outer.state.step
        request.limit = max(1, min(request.limit, left))
    saver = graph.checkpointer
    if saver is None or saver is True:
        saver = outer.saver
    elif saver is not False and own.get("thread_id") not in (None, outer.thread_id):
        # A graph with a saver of its own that is given a thread of its own is
        # no subgraph of this one.
        request.ns = own.get("checkpoint_ns") or ""
        request.pinned = own.get("checkpoint_id")
        request.nested = request.rewound = False
        request.answers = {}
        request.thread_id = str(own["thread_id"])
    request.saver = saver or None
    if request.saver is not None and request.nested:
        request.parents = above(parent.scope, task, "checkpoint_id")
        request.planned = above(parent.scope, task, "since")
        root = outer.root if outer.nested else outer
        if root is not None and root.saver is request.saver:
            request.root = root
    if request.saver is not None and request.thread_id is None:
        around = parent.scope.config.get(CONF, {})
        place_thread(graph, request, own.get("thread_id", around.get("thread_id")))
    if request.saver is None:
        refuse_unsaved_stops(graph, request)


def place_thread(graph: Graph, request: Request, thread: Any) -> None:
    """Name the thread of a nested run that alone has a saver.

    Raises:
        NoCheckpointerError: none is known (TP-601).
    """
    if thread is not None:
        request.thread_id = str(thread)
        return
    message = (
        f"subgraph `{graph.name}` has a checkpointer of its own, but no thread_id is "
        "known"
    )
    if graph.plan_of_graph.semantics.unplaced_savers == "error":
        hint = "run the outer graph with a thread_id"
        raise NoCheckpointerError(message, hint=hint)
    warn_user(f"{message}; it stores nothing", TowpathWarning)
    request.saver = None


def reports_writes(graph: Graph, parent: TaskContext) -> bool:
    """Whether a nested run tells what its nodes wrote: it is a node itself."""
    plan, action = parent.scope.plan, parent.task.spec.action
    return bool(
        plan.sums
        and action is not None
        and action.graph is graph
        and plan.semantics.subgraph_updates == "written"
        and not plan.sums.isdisjoint(graph.plan_of_graph.key_set)
    )


def above(scope: RunScope, task: Task, which: str) -> dict[str, str]:
    """The checkpoints that a run inside a task hangs under, by namespace.

    `which` names the attribute of `Origin` that tells them.
    """
    req, outer = scope.req, scope.outer
    nested = req.around if req.nested else None
    further = above(outer, nested, which) if outer is not None and nested else {}
    return {**further, req.ns: getattr(task.origin, which)}


def number_call(graph: Graph, request: Request, parent: TaskContext) -> None:
    """Give a graph called inside a task its namespace, where it is not the task's.

    A further call in the same task gets a number after it. A graph that keeps
    its state across calls is found without the task's id.
    """
    task = parent.task
    if task.spec.action is None or task.spec.action.graph is not graph:
        parent.scope.plan.called[task.name] = graph
        task.calls += 1
        if task.calls > 1:
            request.ns = f"{task.ns}{NS_SEP}{task.calls - 1}"
    if graph.checkpointer is True:
        request.ns = lasting_ns(request.ns)


def stored_metadata(plan: Plan, config: Mapping[str, Any]) -> dict[str, Any]:
    """What of the caller's config goes into the metadata of checkpoints."""
    given = config.get("metadata") or {}
    # A node may hand its own config, which tells of the task, to a graph it calls.
    keeps = plan.semantics.keeps
    stored = {
        k: v for k, v in given.items() if k not in EXCLUDED_METADATA_KEYS and keeps(k)
    }
    for key, value in (config.get(CONF) or {}).items():
        if plan.semantics.stores(key, value):
            stored.setdefault(key, value)
    return stored


def context_of(graph: Graph, context: Any) -> Any:
    """The run's context, in the form of its schema where that is a class."""
    schema = graph.context_schema
    if isinstance(context, dict) and isinstance(schema, type) and makes(schema):
        try:
            return schema(**context)
        except Exception as error:
            error.add_note(f"`context` must fit context_schema={schema.__name__}")
            raise
    return context


def makes(schema: type) -> bool:
    """Whether instances of a schema class are made from keywords."""
    return hasattr(schema, "__dataclass_fields__") or hasattr(schema, "model_fields")


def needs_threads(graph: Graph, format_: Format) -> bool:
    """Whether chunks come while a node runs, and somebody waits for them."""
    if not format_.modes:
        return False
    specs = graph.plan_of_graph.nodes.values()
    yields = any(s.action is not None and s.action.yields for s in specs)
    live = format_.modes & {"custom", "messages", "tools"}
    return bool(live or format_.subgraphs or yields)


def connect(run_: Run, own: Any) -> None:
    """Let the run's chunks reach those who listen: the caller, and the task around."""
    scope, parent = run_.scope, run_.parent
    if not run_.request.modes:
        emit: Any = silence
    elif parent is None:
        emit = own
    else:
        outer = parent.scope
        modes, mine = run_.format.heard, own
        inner = outer.inner_modes

        def emit(chunk: Chunk) -> None:
            if chunk[1] in inner:
                outer.emit(chunk)
            if chunk[1] in modes:
                mine(chunk)

    scope.emit = run_.request.emit = emit


def check_colour(request: Request) -> None:
    """Refuse a saver that only has async methods in a blocking run."""
    saver = request.saver
    if saver is not None and getattr(saver, "async_only", False):
        raise ColourError(
            f"{type(saver).__name__} only works in async runs",
            hint="use ainvoke or astream, or a saver with blocking methods",
        )


__all__ = ["Options", "Run", "check_colour", "connect", "extras", "prepare_run"]
