"""Where Towpath may differ from the peer, one switch per difference.

`NATIVE` turns every silent loss into an error; `LANGGRAPH` keeps the peer's
observable behaviour, with a warning where it loses something. The engine asks
for a switch, never which preset it is under.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ("LANGGRAPH", "NATIVE", "Semantics", "default", "set_default")

# Keys of a config's `configurable` that never enter checkpoint metadata.
_NEVER_STORED = frozenset(
    {"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The switches. Each field says what it decides and why it exists.

    >>> from dataclasses import replace
    >>> lenient = replace(NATIVE, undeclared_keys="drop")
    """

    undeclared_keys: Literal["error", "drop"] = "error"
    """A node, the input or `update_state` writes a key that no schema
    declares. The peer drops it; the value is then missing much later."""

    unknown_nodes: Literal["error", "skip"] = "error"
    """`goto`, `Send` or a branch names a node that does not exist. The peer
    logs it and ends the run as a success."""

    stalled_joins: Literal["error", "ignore"] = "error"
    """The run ends while a join waits for a branch that was not taken. The
    peer ends as a success without the join's node."""

    idle_resume: Literal["error", "ignore"] = "error"
    """An answer comes when no question is open, or for a thread that never
    ran. The peer does nothing, or starts a run."""

    answered_questions: Literal["closed", "open"] = "closed"
    """A question is closed by its answer, and open again when that is refused: the
    answer is forgotten. For the peer it is open until its task has finished, and a
    refused answer is given again until another comes."""

    on_busy: Literal["wait", "reject", "fork"] = "wait"
    """A second run comes to a thread while one is running. The peer lets both
    write, and loses one's result; no preset does that."""

    defaults_start_reducers: bool = True
    """The default of a dataclass or pydantic field with a reducer is what the
    reducer starts from. The peer ignores it."""

    validate_updates: bool = True
    """Values written to a pydantic state are validated, corrections are kept,
    and the writer is blamed. The peer validates only what a node reads."""

    isolate_state: bool = True
    """A container that a node changes in place without returning it is not
    changed for its siblings and the caller. The peer shares the object."""

    recursion_limit: int = 1000
    """Supersteps of a run, when the config does not say. Under the peer's
    10007 a runaway loop costs a lot of money before it ends."""

    attach_failures: bool = True
    """When several tasks of a step fail, the error that is raised has the
    others attached. The peer reports one."""

    strict_codec: bool = True
    """A value without an exact stored form is an error when it is written.
    The peer stores something else, or its `repr`."""

    unsaved_prompts: Literal["error", "return"] = "error"
    """`interrupt()` without a checkpointer. The peer returns a question that
    nobody can answer."""

    unplaced_savers: Literal["error", "ignore"] = "error"
    """A subgraph has a checkpointer of its own, and no thread is known to store
    it under. The peer stores nothing, and says nothing."""

    store_metadata: Collection[str] | Literal["declared", "configurable"] = ()
    """What of the caller's config enters a checkpoint's metadata: the keys
    named here, of its `metadata` and its `configurable`; all of its `metadata`
    ("declared"); plain values of `configurable` as well ("configurable"), as
    the peer does. They may be secrets, and metadata is searched and shown; a
    tracing library copies `configurable` into `metadata` unasked."""

    changed_graphs: Literal["error", "warn"] = "error"
    """A thread goes on in a graph that cannot take up its state: a key means
    something else, waiting work has no place, its version is not known. The
    peer goes on, and reads what it cannot use or runs nothing."""

    bare_checkpoints: bool = False
    """Checkpoints hold what the peer's hold, and only of a graph with a version which
    graph made the thread. Programs compare whole checkpoints; what this loses is
    that a changed graph is noticed."""

    subgraph_updates: Literal["written", "whole"] = "written"
    """What a subgraph that is a node gives to a key with a reducer: what its
    nodes wrote to the key. The peer gives its whole value; what the subgraph was
    given is part of that, and counts twice."""

    edits_after_sends: Literal["error", "sender"] = "error"
    """`update_state` names no node, and tasks that were sent ran last. The peer
    takes the node that sent them: they run again, and count twice."""

    shared_limit: bool = True
    """Subgraphs take their supersteps from the limit of the run around them.
    The peer counts each graph by itself, so that nesting multiplies it."""

    inner_modes: tuple[str, ...] = ()
    """Stream modes whose chunks leave subgraphs without `subgraphs=True`. The
    peer once let tokens and custom chunks out; today it keeps all of them in."""

    debug_prints: tuple[str, ...] = ()
    """Stream modes that are printed under `debug=True`, beside what it checks. The
    peer checks nothing, and prints updates and values."""

    def stores(self, key: str, value: object) -> bool:
        """Tell whether an entry of `configurable` enters the metadata."""
        asked = self.store_metadata
        return (
            (asked == "configurable" if isinstance(asked, str) else key in asked)
            and not key.startswith("__")
            and key not in _NEVER_STORED
            and isinstance(value, (str, int, float, bool))
        )

    def keeps(self, key: str) -> bool:
        """Tell whether an entry of a config's `metadata` is stored.

        By its run's id, which is no secret, a checkpoint can be deleted.
        """
        asked = self.store_metadata
        return isinstance(asked, str) or key in asked or key == "run_id"


NATIVE: Final = Semantics()
"""The default when importing `towpath`."""

LANGGRAPH: Final = Semantics(
    undeclared_keys="drop",
    unknown_nodes="skip",
    stalled_joins="ignore",
    idle_resume="ignore",
    answered_questions="open",
    defaults_start_reducers=False,
    validate_updates=False,
    isolate_state=False,
    recursion_limit=10007,
    attach_failures=False,
    strict_codec=False,
    unsaved_prompts="return",
    unplaced_savers="ignore",
    store_metadata="configurable",
    changed_graphs="warn",
    bare_checkpoints=True,
    subgraph_updates="whole",
    edits_after_sends="sender",
    shared_limit=False,
    debug_prints=("updates", "values"),
)
"""The default under the drop-in import."""

_default = NATIVE


def default() -> Semantics:
    """Return the semantics of a graph that does not choose its own."""
    return _default


def set_default(semantics: Semantics) -> Semantics:
    """Choose the semantics of graphs compiled from now on; return the former."""
    global _default
    former, _default = _default, semantics
    return former
