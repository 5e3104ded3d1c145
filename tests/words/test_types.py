"""The values users write and receive, beside the peer's."""

from __future__ import annotations

import copy
import dataclasses
import operator
import pickle
import typing
from datetime import timedelta
from typing import Any

import pytest

import towpath.types as ours
from towpath.constants import MISSING
from towpath.context import current
from towpath.errors import (
    InvalidCheckpointerError,
    InvalidPolicyError,
    OutsideNodeError,
)
from towpath.interrupts import interrupt_id
from towpath.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from towpath.warnings import LangGraphDeprecatedSinceV10, LangGraphDeprecatedSinceV11

theirs = pytest.importorskip("langgraph.types")
pydantic = pytest.importorskip("pydantic")

differential = pytest.mark.differential


def outcome(make: Any, module: Any) -> Any:
    """What a call gives in a form both modules share: a repr, or an error."""
    try:
        made = make(module)
    except Exception as error:
        kinds = [k.__name__ for k in type(error).__mro__]
        return "raised", next(k for k in kinds if k in dir(__builtins__) or k in KINDS)
    return repr(made).replace("langgraph.", "towpath.")


KINDS = {"TypeError", "ValueError", "AttributeError", "KeyError"}

SAME = {
    "send": lambda m: m.Send("n", 1),
    "send by name": lambda m: m.Send(node="n", arg={"a": [1]}),
    "send with timeout": lambda m: m.Send("n", 1, timeout=3),
    "send with no limit": lambda m: m.Send("n", 1, timeout=m.TimeoutPolicy()),
    "send with bad timeout": lambda m: m.Send("n", 1, timeout=-1),
    "send with text timeout": lambda m: m.Send("n", 1, timeout="x"),
    "send equality": lambda m: [
        m.Send("n", 1) == other
        for other in (m.Send("n", 1), m.Send("n", 1, timeout=2), m.Send("m", 1), 5)
    ],
    "send hash": lambda m: hash(m.Send("n", 1)) == hash(m.Send("n", 1)),
    "send hash of a list": lambda m: hash(m.Send("n", [])),
    "send other attribute": lambda m: setattr(m.Send("n", 1), "foo", 1),
    "command": lambda m: m.Command(),
    "command all": lambda m: m.Command(
        graph="g", update={"a": 1}, resume={"b": 2}, goto=["x"]
    ),
    "command falsy": lambda m: m.Command(update=[], goto=[], graph=""),
    "command goto send": lambda m: m.Command(goto=m.Send("a", 1)),
    "command positional": lambda m: m.Command(1),
    "command equality": lambda m: [
        m.Command() == m.Command(),
        m.Command(resume=None) == m.Command(),
        m.Command(resume=1) == m.Command(resume=2),
    ],
    "command frozen": lambda m: setattr(m.Command(), "graph", 1),
    "command hash": lambda m: hash(m.Command()) == hash(m.Command()),
    "command hash of a dict": lambda m: hash(m.Command(update={})),
    "command replace": lambda m: dataclasses.replace(m.Command(resume=1), goto="b"),
    "command asdict": lambda m: dataclasses.asdict(m.Command(goto="b")),
    "command fields": lambda m: [
        (f.name, f.default) for f in dataclasses.fields(m.Command)
    ],
    "command parent": lambda m: m.Command.PARENT,
    "command pickle": lambda m: pickle.loads(pickle.dumps(m.Command(update=1))),
    "interrupt": lambda m: m.Interrupt("v"),
    "interrupt with id": lambda m: m.Interrupt("v", "i"),
    "interrupt with schema": lambda m: m.Interrupt("v", "i", response_schema=int),
    "interrupt positional schema": lambda m: m.Interrupt("v", "i", int),
    "interrupt without value": lambda m: m.Interrupt(),
    "interrupt old keywords": lambda m: m.Interrupt("v", resumable=True, when="during"),
    "interrupt id before ns": lambda m: m.Interrupt("v", id="a", ns=["x"]),
    "interrupt equality": lambda m: [
        m.Interrupt("v", "i") == m.Interrupt("v", "i"),
        m.Interrupt("v", "i") == m.Interrupt("v", "i", response_schema=int),
    ],
    "interrupt hash": lambda m: hash(m.Interrupt("v")),
    "interrupt replace": lambda m: dataclasses.replace(m.Interrupt("v", "i"), value=2),
    "overwrite": lambda m: m.Overwrite(1),
    "overwrite type": lambda m: m.Overwrite(1, "x"),
    "overwrite hash": lambda m: hash(m.Overwrite(1)),
    "trace policy": lambda m: m.TracePolicy(),
    "omit": lambda m: m.omit_payload({"a": 1}),
    "retry policy": lambda m: m.RetryPolicy(retry_on=ValueError),
    "state update": lambda m: m.StateUpdate({"a": 1}),
    "task": lambda m: m.PregelTask("i", "n", ("p",)),
    "snapshot": lambda m: m.StateSnapshot({}, (), {}, None, None, None, (), ()),
    "cache key": lambda m: m.CacheKey(("a",), "k", None),
    "graph output": lambda m: m.GraphOutput({"a": 1}),
    "no checkpointer": lambda m: [
        m.ensure_valid_checkpointer(c) for c in (None, True, False)
    ],
    "bad checkpointer": lambda m: m.ensure_valid_checkpointer("x"),
    "stream modes": lambda m: typing.get_args(m.StreamMode),
    "durability": lambda m: typing.get_args(m.Durability),
}


@differential
@pytest.mark.parametrize("make", SAME.values(), ids=SAME.keys())
def test_same_as_the_peer(make: Any) -> None:
    assert outcome(make, theirs) == outcome(make, ours)


@differential
def test_every_public_name_of_the_peer_is_there() -> None:
    assert [] == [name for name in theirs.__all__ if not hasattr(ours, name)]


# -- Command ------------------------------------------------------------------


def test_none_is_an_answer_and_no_answer_is_none() -> None:
    """LG#7034: the field reads None in both cases, `has_resume` tells."""
    assert (None, True) == (
        Command(resume=None).resume,
        Command(resume=None).has_resume,
    )
    assert (None, False) == (Command().resume, Command().has_resume)
    assert Command(resume=0).has_resume
    assert "Command(resume=None)" == repr(Command(resume=None))


@pytest.mark.parametrize(
    "command", [Command(), Command(resume=None), Command(resume=1)]
)
@pytest.mark.parametrize(
    "again",
    [
        lambda c: dataclasses.replace(c, goto="b"),
        copy.copy,
        copy.deepcopy,
        lambda c: pickle.loads(pickle.dumps(c)),
    ],
    ids=["replace", "copy", "deepcopy", "pickle"],
)
def test_whether_there_is_an_answer_survives_copies(
    command: Command, again: Any
) -> None:
    assert command.has_resume is again(command).has_resume


def test_replaced_answer_is_an_answer() -> None:
    assert dataclasses.replace(Command(), resume=5).has_resume


def test_command_of_a_type_can_be_called() -> None:
    assert Command(goto="x") == Command[str](goto="x")


def test_command_can_be_given_a_base_that_has_a_dict() -> None:
    """The langchain adapter marks it as something a tool may return."""

    class Marker:
        pass

    before = Command.__bases__
    try:
        Command.__bases__ = (*before, Marker)
        assert isinstance(Command(), Marker)
    finally:
        Command.__bases__ = before


@dataclasses.dataclass
class Data:
    a: int
    b: int | None = None
    c: list[int] = dataclasses.field(default_factory=list)
    d: typing.ClassVar[int] = 4


class Model(pydantic.BaseModel):
    a: int = 1
    b: int | None = None
    c: list[int] = []
    d: str | None = "x"


class Wide(Model):
    e: int | None = 3


class Plain:
    a: int
    b: int = 1


class Pair(typing.NamedTuple):
    a: int
    b: int


UPDATES = [
    *(None, {}, {"a": None}, {1: 2}, [], [("a", 1)], (("a", 1), ("b", 2))),
    *([["a", 1]], [("a", 1, 2)], [(1, 2)], [()], ("a", 1), "text", "", 0, False, {1}),
    *(Model(), Model(a=5, d=None), Model(b=None), Model(c=[]), Wide(), Pair(1, 2)),
    *(Plain(), Plain, Data, [("a", 1), 3]),
]


@differential
@pytest.mark.parametrize("update", UPDATES, ids=range(len(UPDATES)))
def test_update_writes_what_the_peers_does(update: Any) -> None:
    expected = list(theirs.Command(update=update)._update_as_tuples())

    assert expected == list(Command(update=update)._update_as_tuples())


def test_update_of_an_object_leaves_out_class_variables() -> None:
    written = Command(update=Data(1))._update_as_tuples()

    assert [("a", 1), ("b", None), ("c", [])] == written


# -- Interrupt ----------------------------------------------------------------


def test_question_has_the_same_id_in_the_same_namespace() -> None:
    one = Interrupt.from_ns("v", "a:1|b:2")

    assert one == Interrupt.from_ns("v", "a:1|b:2")
    assert one.id == Interrupt("v", ns=["a:1", "b:2"]).id == interrupt_id("a:1|b:2")
    assert one.id != Interrupt.from_ns("v", "a:1|b:3").id
    assert 32 == len(one.id)


def test_former_name_of_the_id_is_deprecated() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10):
        assert "i" == Interrupt("v", "i").interrupt_id


def test_interrupt_is_pickled_under_its_public_name() -> None:
    assert "towpath.types" == Interrupt.__module__
    assert Interrupt("v", "i") == pickle.loads(pickle.dumps(Interrupt("v", "i")))


class Task:
    """A stand-in for the running task."""

    config = {"tags": ["t"]}
    runtime = "runtime"
    store = "store"
    writer = "writer"

    def ask(self, value: Any, response_schema: Any, key: Any) -> Any:
        return value, response_schema


def test_interrupt_asks_the_running_task() -> None:
    token = current.set(Task())
    try:
        assert ("q", int) == ours.interrupt("q", response_schema=int)
    finally:
        current.reset(token)


def test_interrupt_outside_of_a_node_says_so() -> None:
    with pytest.raises(OutsideNodeError, match="`interrupt` was called outside"):
        ours.interrupt("q")


# -- policies -----------------------------------------------------------------

LIMITS = [
    *(None, 1, 1.5, 0, -1, True, timedelta(seconds=3), timedelta(0), "x"),
    *(float("inf"), {}, {"run_timeout": 2}, {"idle_timeout": timedelta(seconds=2)}),
    *({"idle_timeout": -1}, {"refresh_on": "x"}, {"refresh_on": "heartbeat"}),
    {"run_timeout": 2, "refresh_on": "heartbeat"},
]


@differential
@pytest.mark.parametrize("limit", LIMITS, ids=repr)
def test_timeouts_are_coerced_as_by_the_peer(limit: Any) -> None:
    def coerce(module: Any) -> Any:
        policy = module.TimeoutPolicy
        value = policy(**limit) if isinstance(limit, dict) else limit
        return policy.coerce(value)

    assert outcome(coerce, theirs) == outcome(coerce, ours)


def test_bad_timeout_is_a_coded_error() -> None:
    for limit in (0, "x", float("-inf")):
        with pytest.raises(InvalidPolicyError) as caught:
            TimeoutPolicy.coerce(limit)
        assert "TP-605" == caught.value.code


def errors_to_retry() -> list[Any]:
    import builtins

    found = []
    for name in sorted(dir(builtins)):
        kind = getattr(builtins, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                found.append(kind("x"))
            except TypeError:
                continue
    return found


@differential
@pytest.mark.parametrize("error", errors_to_retry(), ids=lambda e: type(e).__name__)
def test_builtin_errors_are_retried_as_by_the_peer(error: Exception) -> None:
    assert theirs.default_retry_on(error) is ours.default_retry_on(error)


@differential
@pytest.mark.parametrize("status", [301, 400, 404, 429, 499, 500, 503, 599, 600])
def test_http_errors_are_retried_as_by_the_peer(status: int) -> None:
    httpx = pytest.importorskip("httpx")
    request = httpx.Request("GET", "http://x")
    response = httpx.Response(status, request=request)
    error = httpx.HTTPStatusError("m", request=request, response=response)

    assert theirs.default_retry_on(error) is ours.default_retry_on(error)


def test_requests_answers_of_500_are_retried() -> None:
    requests = pytest.importorskip("requests")

    def answer(status: int) -> Any:
        response = requests.Response()
        response.status_code = status
        return requests.HTTPError("m", response=response)

    assert ours.default_retry_on(answer(503))
    assert not ours.default_retry_on(answer(404))
    assert ours.default_retry_on(requests.HTTPError("no answer"))
    assert not ours.default_retry_on(requests.exceptions.InvalidURL())


def test_timeout_of_a_node_is_retried() -> None:
    from towpath.errors import NodeTimeoutError

    error = NodeTimeoutError("n", 1.0, kind="run", run_timeout=0.5)

    assert ours.default_retry_on(error)


def test_cache_key_does_not_depend_on_order() -> None:
    key = ours.default_cache_key

    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key({3, 1, 2}) == key({2, 3, 1})
    assert key(1, x=1, y=2) == key(1, y=2, x=1)
    assert key([1]) != key((1,))
    assert key({"a": 1}) != key([("a", 1)])
    assert key({1: [{"b": 1, "a": 2}]}) == key({1: [{"a": 2, "b": 1}]})


def test_generic_policies_can_be_called() -> None:
    assert ours.CachePolicy() == ours.CachePolicy[Any]()


# -- the rest -----------------------------------------------------------------


def test_output_reads_like_a_mapping_with_a_warning() -> None:
    output = ours.GraphOutput({"a": 1}, ("i",))

    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert 1 == output["a"]
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert ("i",) == output["__interrupt__"]
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert "a" in output
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert "__interrupt__" in output
    with pytest.warns(LangGraphDeprecatedSinceV11), pytest.raises(KeyError):
        output["b"]
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert 1 == ours.GraphOutput(Data(1))["a"]
    with pytest.warns(LangGraphDeprecatedSinceV11):
        assert "z" not in ours.GraphOutput(Data(1))
    with pytest.warns(LangGraphDeprecatedSinceV11), pytest.raises(KeyError):
        ours.GraphOutput([1])["0"]


def test_saver_is_recognised_by_its_methods() -> None:
    class Saver:
        def get_tuple(self, config: Any) -> None: ...

        def put_writes(self, *args: Any) -> None: ...

    saver = Saver()
    assert saver is ours.ensure_valid_checkpointer(saver)
    with pytest.raises(InvalidCheckpointerError, match="Received object"):
        ours.ensure_valid_checkpointer(object())


def test_stream_parts_are_generic() -> None:
    assert ours.StreamPart[dict, dict]
    assert ours.DebugPayload[dict]
    assert ours.CheckpointPayload[dict]


def test_send_is_copied_and_pickled() -> None:
    send = Send("n", [1], timeout=2)

    assert send == copy.copy(send) == pickle.loads(pickle.dumps(send))


def test_overwrite_is_equal_by_value() -> None:
    assert Overwrite([1]) == Overwrite([1])
    assert operator.ne(Overwrite(1), Overwrite(MISSING))
