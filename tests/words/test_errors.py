"""Errors carry a code, a message and a hint, and the peer's class tree."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import towpath.errors as errors
import towpath.runtime  # noqa: F401 - registers its code
from towpath.errors import CODES, TowpathError, nearest
from towpath.interrupts import Interrupt
from towpath.warnings import LangGraphDeprecatedSinceV10

peer = pytest.importorskip("langgraph.errors")

PLAIN = [
    kind
    for kind in CODES.values()
    if kind
    not in (
        errors.NodeTimeoutError,
        errors.UnknownInterruptError,
        errors.OutsideNodeError,
        errors.NodeCancelledError,
    )
]
SAMPLES: list[Exception] = [
    *(kind("what happened", hint="do this") for kind in PLAIN),
    errors.NodeTimeoutError("n", 1.5, kind="run", run_timeout=1.0),
    errors.NodeTimeoutError("n", 1.5, kind="idle", idle_timeout=1.0),
    errors.UnknownInterruptError("m", reason="empty_map", pending_ids=["a"]),
    errors.OutsideNodeError("interrupt"),
    errors.NodeCancelledError("n"),
    errors.GraphInterrupt([Interrupt("v", "i")]),
    errors.GraphDrained("deploy"),
    errors.ParentCommand("command"),
]


def test_codes_are_well_formed_and_unique() -> None:
    for code, kind in CODES.items():
        assert code == kind.code
        assert code.startswith("TP-")
        assert len(code) == 6
    assert len(CODES) == len(set(CODES.values()))


def test_a_code_cannot_be_taken_twice() -> None:
    with pytest.raises(AssertionError, match="TP-201 is taken"):
        type("Mine", (TowpathError,), {"code": "TP-201"})
    assert CODES["TP-201"] is errors.InvalidUpdateError


def test_a_users_subclass_keeps_the_code() -> None:
    class Mine(errors.InvalidUpdateError):
        pass

    assert "TP-201" == Mine("x").code
    assert CODES["TP-201"] is errors.InvalidUpdateError


def test_message_is_rendered_with_code_and_hint() -> None:
    error = errors.InvalidUpdateError("what happened", hint="do this")

    assert "[TP-201] what happened\n  hint: do this" == str(error)
    assert ("what happened", "do this") == (error.message, error.hint)
    assert "[TP-201]" == str(errors.InvalidUpdateError())


@pytest.mark.parametrize("kind", PLAIN, ids=lambda k: k.__name__)
def test_plain_construction_works(kind: type[TowpathError]) -> None:
    assert "message" == kind("message").message
    assert "a hint" == kind("message", hint="a hint").hint


@pytest.mark.parametrize("error", SAMPLES, ids=lambda e: type(e).__name__)
def test_error_survives_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(error) is type(again)
    assert (error.args, error.__dict__) == (again.args, again.__dict__)
    assert str(error) == str(again)


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (errors.GraphRecursionError, RecursionError),
        (errors.NodeTimeoutError, TimeoutError),
        (errors.StepTimeoutError, TimeoutError),
        (errors.InvalidGraphError, ValueError),
        (errors.NoCheckpointerError, ValueError),
        (errors.UnknownNamespaceError, ValueError),
        (errors.ColourError, TypeError),
        (errors.OutsideNodeError, RuntimeError),
        (errors.SerializationError, TypeError),
        (errors.InvalidValueError, ValueError),
        (errors.UnknownNodeError, errors.InvalidUpdateError),
        (errors.UndeclaredKeyError, errors.InvalidUpdateError),
        (errors.ConcurrentUpdateError, errors.InvalidUpdateError),
        (errors.AmbiguousUpdateError, errors.InvalidUpdateError),
        (errors.MutatedStateError, errors.InvalidUpdateError),
        (errors.ThreadBusyError, errors.PersistenceError),
    ],
)
def test_errors_are_caught_by_what_they_are(kind: type, base: type) -> None:
    assert issubclass(kind, base)
    assert issubclass(kind, TowpathError)


@pytest.mark.parametrize(
    "kind",
    [
        errors.GraphBubbleUp,
        errors.GraphInterrupt,
        errors.GraphDrained,
        errors.ParentCommand,
        errors.NodeInterrupt,
    ],
)
def test_control_flow_is_no_error(kind: type) -> None:
    assert issubclass(kind, errors.GraphBubbleUp)
    assert not issubclass(kind, TowpathError)


@pytest.mark.differential
def test_peers_class_tree_is_kept() -> None:
    public = [
        name
        for name in peer.__all__
        if isinstance(getattr(peer, name), type)
        and issubclass(getattr(peer, name), Exception)
    ]

    for name in public:
        theirs = {base.__name__ for base in getattr(peer, name).__mro__}
        ours = {base.__name__ for base in getattr(errors, name).__mro__}
        assert theirs <= ours, name


@pytest.mark.differential
@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.NodeTimeoutError("n", 1.5, kind="run", run_timeout=1),
        lambda m: m.NodeTimeoutError(
            "n", 1.5, kind="idle", idle_timeout=1, run_timeout=3
        ),
        lambda m: m.NodeCancelledError("n"),
        lambda m: m.NodeCancelledError("n", "m"),
        lambda m: m.GraphDrained(),
        lambda m: m.GraphDrained("x"),
        lambda m: m.GraphInterrupt(),
        lambda m: m.GraphInterrupt([1]),
        lambda m: m.ParentCommand(1),
        lambda m: m.UnknownInterruptError("m", reason="ambiguous"),
        lambda m: m.EmptyInputError("m"),
    ],
)
def test_errors_hold_what_the_peers_hold(make: Any) -> None:
    theirs, ours = make(peer), make(errors)

    assert theirs.args == ours.args
    assert theirs.__dict__ == ours.__dict__


@pytest.mark.differential
def test_error_codes_are_the_peers() -> None:
    assert [c.value for c in peer.ErrorCode] == [c.value for c in errors.ErrorCode]
    message = errors.create_error_message(
        message="what", error_code=errors.ErrorCode.MULTIPLE_SUBGRAPHS
    )
    assert message.startswith("what\n")
    assert "MULTIPLE_SUBGRAPHS" in message


@pytest.mark.parametrize("kind", ["run", "idle"])
def test_timeout_needs_its_limit(kind: Any) -> None:
    with pytest.raises(ValueError, match=f"{kind}_timeout is required"):
        errors.NodeTimeoutError("n", 1.0, kind=kind)


def test_node_interrupt_is_deprecated_and_carries_a_question() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10, match=r"types\.interrupt"):
        raised = errors.NodeInterrupt("v", "i")

    assert ([Interrupt("v", "i")],) == raised.args


def test_refused_answer_is_recognised() -> None:
    error = ValueError("no number")
    before = errors.is_invalid_resume(error)
    errors.mark_invalid_resume(error)

    assert (False, True) == (before, errors.is_invalid_resume(error))
    assert not errors.is_invalid_resume(asyncio.CancelledError())


def test_nearest_name_is_suggested() -> None:
    assert " Did you mean `messages`?" == nearest("mesages", ["messages", "other"])
    assert "" == nearest("zzz", ["messages"])
    assert "" == nearest("a", [])
    assert "" == nearest(5, ["messages"])


def test_node_error_is_frozen() -> None:
    failed = errors.NodeError("n", ValueError("x"))

    with pytest.raises(AttributeError):
        failed.node = "m"
