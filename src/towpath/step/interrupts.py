"""Static breakpoints, open questions, and binding answers to questions.

Every open question has an id, and a key where the code gave it one. An answer is
bound to a question by either, or, when exactly one is open, given bare.
Everything that is wrong about an answer is found here, before anything is
written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from towpath.constants import (
    ERROR,
    ERROR_SOURCE_NODE,
    INTERRUPT,
    NO_WRITES,
    NULL_TASK_ID,
    RESUME,
)
from towpath.errors import NothingToResumeError, UnknownInterruptError
from towpath.step.state import State
from towpath.step.tasks import Task
from towpath.types import Interrupt

Pending = Mapping[str, Sequence[tuple[str, Any]]]
# Writes that tell of a task, not by it.
SPECIAL: Final = frozenset({INTERRUPT, RESUME, ERROR, ERROR_SOURCE_NODE})
ID: Final = re.compile(r"[0-9a-f]{32}")


def breaks(state: State, tasks: Sequence[Task], nodes: frozenset[str] | str) -> bool:
    """Whether a static breakpoint on any of `nodes` stops the run here.

    A breakpoint stops once per version of the state: not again until a
    channel has changed since the last stop.
    """
    if not nodes or not tasks:
        return False
    hit = any(
        not task.spec.hidden if nodes == "*" else task.name in nodes for task in tasks
    )
    if not hit:
        return False
    seen = state.seen.get(INTERRUPT)
    if not seen:
        return True
    return any(
        name not in seen or version > seen[name]
        for name, version in state.versions.items()
    )


def mark_stop(state: State) -> None:
    """Note that the run goes on from here, so that no breakpoint repeats."""
    state.seen[INTERRUPT] = dict(state.versions)


def open_questions(pending: Pending) -> dict[str, tuple[Interrupt[Any], ...]]:
    """The questions of each task that is still waiting, by task id."""
    found = {}
    for task_id, writes in pending.items():
        if is_done(writes):
            continue
        for channel, value in writes:
            if channel == INTERRUPT:
                found[task_id] = tuple(value)
    return found


def is_done(writes: Sequence[tuple[str, Any]]) -> bool:
    """Whether these recorded writes say that their task has finished."""
    return any(channel not in SPECIAL for channel, _ in writes)


def own_writes(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """What a task itself wrote, of all that is recorded of it."""
    return [w for w in writes if w[0] not in SPECIAL and w[0] != NO_WRITES]


def accepted_answers(pending: Pending) -> dict[str, Any]:
    """Answers that were taken before and may not have been used yet."""
    for channel, value in pending.get(NULL_TASK_ID, ()):
        if channel == RESUME and isinstance(value, Mapping):
            return dict(value)
    return {}


def bind(
    answer: Any, questions: Mapping[str, Sequence[Interrupt[Any]]]
) -> dict[str, Any]:
    """The answers of a `Command(resume=...)` by question id.

    A mapping whose keys are all keys of open questions answers those.

    Raises:
        NothingToResumeError: no question is open.
        UnknownInterruptError: an id is not open, or a bare answer meets
            several questions.
    """
    asked = [question for several in questions.values() for question in several]
    known = list(dict.fromkeys(question.id for question in asked))
    if is_keyed_map(answer, asked):
        return by_key(answer, asked)
    if is_answer_map(answer, known):
        unknown = [key for key in answer if key not in known]
        if unknown:
            raise UnknownInterruptError(
                f"no open question has the id {', '.join(unknown)}",
                reason="not_pending",
                interrupt_ids=tuple(unknown),
                pending_ids=tuple(known),
                hint=f"open are: {', '.join(known) or 'none'}",
            )
        return dict(answer)
    if not known:
        raise NothingToResumeError(
            "the thread has no open question, so there is nothing to answer",
            hint="invoke with None to continue, or with new input to go on",
        )
    if len(known) > 1:
        raise UnknownInterruptError(
            f"{len(known)} questions are open, so a bare answer is ambiguous; "
            "answer by id: Command(resume={id: answer})",
            reason="ambiguous",
            pending_ids=tuple(known),
        )
    return {known[0]: answer}


def is_keyed_map(answer: Any, asked: Sequence[Interrupt[Any]]) -> bool:
    """Whether a mapping answers questions by key: each of its keys is one's key."""
    keys = {question.key for question in asked} - {None}
    if not keys or not isinstance(answer, Mapping) or not answer:
        return False
    return all(key in keys for key in answer)


def by_key(
    answer: Mapping[str, Any], asked: Sequence[Interrupt[Any]]
) -> dict[str, Any]:
    """The answers by question id, of a mapping by key.

    Raises:
        UnknownInterruptError: several tasks ask a question of that key.
    """
    bound: dict[str, Any] = {}
    for key, value in answer.items():
        ids = list(dict.fromkeys(q.id for q in asked if q.key == key))
        if len(ids) > 1:
            raise UnknownInterruptError(
                f"{len(ids)} open questions have the key `{key}`; answer by id: "
                "Command(resume={id: answer})",
                reason="ambiguous",
                interrupt_ids=tuple(ids),
                pending_ids=tuple(dict.fromkeys(q.id for q in asked)),
            )
        bound[ids[0]] = value
    return bound


def is_answer_map(answer: Any, known: Sequence[str]) -> bool:
    """Whether a mapping answers questions by id, and is not itself an answer."""
    if not isinstance(answer, Mapping) or not answer:
        return False
    if any(key in known for key in answer):
        return True
    return all(isinstance(key, str) and ID.fullmatch(key) for key in answer)
