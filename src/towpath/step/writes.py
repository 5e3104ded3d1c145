"""What a node returned -> the writes it makes.

A result is None, a mapping, an instance of a schema class, a `Command`, or a
list with commands in it. Each becomes (channel, value) pairs: state keys
first, then what the branches answered and the static edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from towpath.constants import END, MISSING, ROOT, START, TASKS
from towpath.errors import (
    InvalidReturnError,
    InvalidUpdateError,
    InvalidValueError,
    NoDestinationError,
    ParentCommand,
    UndeclaredKeyError,
    UnknownNodeError,
    UnmappedAnswerError,
    nearest,
)
from towpath.plan import BranchSpec, NodeSpec, Plan
from towpath.schema import as_update
from towpath.step.state import State
from towpath.step.tasks import Write
from towpath.step.written import Result
from towpath.types import Command, Send
from towpath.warnings import warn_user

TO: Final = "branch:to:"
JOIN: Final = "join:"


def updates_of(plan: Plan, spec: NodeSpec, output: Any) -> list[Write]:
    """The writes of one result; what the node's edges add is not among them.

    Raises:
        InvalidUpdateError: the result is no update, or names an unknown key
            or node.
        ParentCommand: the result is a command for a graph further up.
    """
    if spec.emit is not None:
        return list(spec.emit(output))
    if type(output) is dict and not plan.root:
        return keyed(plan, spec, output.items())
    if type(output) is Result and not plan.root:
        return keyed(plan, spec, output.updates(plan))
    parts = parts_of(output)
    up = [p for p in parts if isinstance(p, Command) and p.graph is not None]
    if up:
        raise ParentCommand(joined(up))
    writes: list[Write] = []
    for part in parts:
        writes.extend(part_writes(plan, spec, part))
    return writes


def joined(commands: Sequence[Command[Any]]) -> Command[Any]:
    """Several commands for the graph above as one: updates and targets in order."""
    first = commands[0]
    if len(commands) == 1:
        return first
    updates: list[tuple[str, Any]] = []
    targets: list[Any] = []
    for command in commands:
        updates.extend(command._update_as_tuples())  # noqa: SLF001 - the peer's name
        goto = command.goto
        targets.extend(goto if isinstance(goto, list | tuple | set) else (goto,))
    return Command(graph=first.graph, update=updates or None, goto=tuple(targets))


def parts_of(output: Any) -> Sequence[Any]:
    """A list that holds commands or sends is several results; else it is one."""
    if isinstance(output, list | tuple) and any(
        isinstance(part, Command | Send) for part in output
    ):
        return output
    return (output,)


def part_writes(plan: Plan, spec: NodeSpec, part: Any) -> list[Write]:
    if isinstance(part, Command):
        return command_writes(plan, spec, part)
    if isinstance(part, Send):
        return target_writes(plan, part, f"node `{spec.name}`")
    if part is None:
        return []
    if plan.root:
        return [(ROOT, checked(plan, spec, ROOT, part))]
    pairs = as_update(part, plan.keys, plan.starts)
    if pairs is None:
        raise InvalidReturnError(
            f"{writer_of(spec)} returned {kind(part)}, which is no state update"
            if spec.name != START
            else f"the input is {kind(part)}, which is no state update",
            hint="a dict of the keys to write, a Command, or None",
        )
    return keyed(plan, spec, pairs)


def command_writes(plan: Plan, spec: NodeSpec, command: Command[Any]) -> list[Write]:
    """What a command for this graph writes: its update, then where it goes."""
    if command.graph is not None:
        raise ParentCommand(command)
    writes: list[Write] = []
    update = command.update
    if update is not None:
        writes.extend(update_writes(plan, spec, update))
    goto = command.goto
    targets = goto if isinstance(goto, list | tuple | set) else (goto,)
    for target in targets:
        writes.extend(target_writes(plan, target, f"node `{spec.name}`"))
    return writes


def update_writes(plan: Plan, spec: NodeSpec, update: Any) -> list[Write]:
    """The update of a command: a mapping, pairs, or an instance of a schema."""
    if plan.root:
        return [(ROOT, checked(plan, spec, ROOT, update))]
    if isinstance(update, list | tuple):
        if all(isinstance(p, tuple) and len(p) == 2 for p in update):
            return keyed(plan, spec, update)
        pairs = None
    else:
        pairs = as_update(update, plan.keys, plan.starts)
    if pairs is None:
        raise InvalidReturnError(
            f"node `{spec.name}`: Command(update={kind(update)}) is no state update",
            hint="give a dict of the keys to write",
        )
    return keyed(plan, spec, pairs)


def keyed(plan: Plan, spec: NodeSpec, pairs: Iterable[tuple[Any, Any]]) -> list[Write]:
    """Keep the declared keys; what happens to others is a matter of semantics."""
    keys = plan.input_keys if spec.name == START else plan.key_set
    copied = plan.copied
    writes = []
    for key, value in pairs:
        if key not in keys:
            undeclared(plan, spec, key)
        elif type(value) in copied:
            # A node may keep a container it returned, and change it later.
            writes.append((key, value.copy()))
        else:
            writes.append((key, value))
    if plan.validate is not None:
        return [(key, checked(plan, spec, key, value)) for key, value in writes]
    return writes


def checked(plan: Plan, spec: NodeSpec, key: str, value: Any) -> Any:
    """The value as its field's rules correct it.

    Raises:
        InvalidValueError: names the node and the key (TP-210).
        pydantic.ValidationError: the input does not fit.
    """
    if plan.validate is None:
        return value
    try:
        return plan.validate(key, value)
    except ValueError as error:
        if spec.name == START:
            # The caller's own value: the error of its own model says it best.
            error.add_note(f"The input gave {kind(value)} for `{key}`")
            raise
        raise InvalidValueError(
            f"{writer_of(spec)} wrote {kind(value)} to `{key}`, which its field "
            f"refuses: {error}"
        ) from error


def writer_of(spec: NodeSpec) -> str:
    return "the input" if spec.name == START else f"node `{spec.name}`"


def undeclared(plan: Plan, spec: NodeSpec, key: Any) -> None:
    # A subgraph has keys of its own; that its parent lacks some is the rule.
    graph = spec.action is not None and spec.action.graph is not None
    if graph or key in plan.managed:
        return
    message = f"{writer_of(spec)} writes key `{key}`, which no schema declares"
    if plan.semantics.undeclared_keys == "error":
        hint = nearest(key, plan.keys) or f"declared are: {', '.join(plan.keys)}"
        raise UndeclaredKeyError(message, hint=hint)
    warn_user(f"{message}; it was dropped", RuntimeWarning)


def target_writes(plan: Plan, target: Any, source: str) -> list[Write]:
    """The write that makes `target` run next: nothing for END."""
    if isinstance(target, Send):
        if target.node == END:
            raise InvalidUpdateError(
                f"{source} sends to END, which takes no input",
                hint="go to END by name instead",
            )
        if target.node in plan.nodes:
            return [(TASKS, target)]
        target = target.node
    elif target == END:
        return []
    elif is_node(plan, target):
        return [(TO + str(target), None)]
    message = f"{source} goes to {target!r}, which is no node of this graph"
    if plan.semantics.unknown_nodes == "error":
        known = [name for name, spec in plan.nodes.items() if not spec.hidden]
        raise UnknownNodeError(message, hint=nearest(target, known))
    warn_user(f"{message}; nothing runs there", RuntimeWarning)
    return []


def is_node(plan: Plan, target: Any) -> bool:
    """Whether this names a node that can be gone to."""
    if type(target) is not str and not isinstance(target, Hashable):
        return False
    return target in plan.nodes and target != START


def branch_writes(
    plan: Plan, spec: NodeSpec, branch: BranchSpec, answer: Any
) -> Sequence[Write]:
    """Where a path function's answer leads."""
    if type(answer) is str and answer in branch.leads:
        return branch.leads[answer]
    answers = answer if isinstance(answer, list | tuple) else (answer,)
    source = f"the branch `{branch.name}` of `{spec.name}`"
    writes: list[Write] = []
    for item in answers:
        if type(item) is Send and item.node in plan.nodes:
            writes.append((TASKS, item))
            continue
        target = item
        if branch.ends is not None and not isinstance(item, Send):
            target = branch.ends.get(item, MISSING)
            if target is MISSING:
                ends = [str(end) for end in branch.ends]
                raise UnmappedAnswerError(
                    f"{source} answered {item!r}, which its path map does not hold",
                    hint=nearest(item, ends) or f"it holds: {', '.join(ends)}",
                )
        if target is None or target == START:
            raise NoDestinationError(
                f"{source} answered {target!r}, which is no destination",
                hint="answer a node's name, END, a Send, or a list of them",
            )
        writes.extend(target_writes(plan, target, source))
    return writes


def merged(plan: Plan, writes: list[Write]) -> list[Write]:
    """Fold what one generator yielded: a single-valued key keeps the last."""
    last = {
        channel: index
        for index, (channel, _) in enumerate(writes)
        if channel in plan.channels and plan.channels[channel].single
    }
    return [
        write
        for index, write in enumerate(writes)
        if last.get(write[0], index) == index
    ]


def looked_ahead(plan: Plan, state: State, writes: Sequence[Write]) -> dict[str, Any]:
    """The written keys with their values after these writes; `MISSING` for none.

    Nobody else holds the containers among them.
    """
    grouped: dict[str, list[Any]] = {}
    keys = plan.key_set
    for name, value in writes:
        if name in grouped:
            grouped[name].append(value)
        elif name in keys:
            grouped[name] = [value]
    ahead: dict[str, Any] = {}
    for name, several in grouped.items():
        if name in plan.plain and len(several) == 1:
            value = several[0]
            ahead[name] = value.copy() if type(value) in plan.copied else value
        else:
            cells = plan.channels if name in plan.plain else state.channels
            ahead[name] = cells[name].ahead(several)
    return ahead


def overlaid(values: dict[str, Any], ahead: dict[str, Any]) -> dict[str, Any]:
    """Values with what `looked_ahead` found laid over them, as a new dict."""
    values = {**values, **ahead}
    for name, value in ahead.items():
        if value is MISSING:
            del values[name]
    return values


def fresh_values(plan: Plan, state: State, writes: Sequence[Write]) -> dict[str, Any]:
    """All values, with these writes folded in."""
    return overlaid(state.values, looked_ahead(plan, state, writes))


def kind(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
