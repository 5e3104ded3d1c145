"""Constants, semantics, runtime, config, managed values, callbacks, warnings."""

from __future__ import annotations

import logging
import subprocess
import sys
import typing
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

import towpath.callbacks as callbacks
import towpath.config as config
import towpath.constants as constants
import towpath.managed.is_last_step as managed
import towpath.runtime as runtime
import towpath.semantics as semantics
import towpath.typing as towpath_typing
from towpath.context import ambient, current
from towpath.errors import OutsideNodeError
from towpath.managed import IsLastStep, RemainingSteps
from towpath.managed.base import is_managed_value
from towpath.runtime import ExecutionInfo, RunControl, Runtime
from towpath.version import __version__
from towpath.warnings import (
    LangGraphDeprecatedSinceV10,
    LangGraphDeprecationWarning,
    TowpathWarning,
)

differential = pytest.mark.differential


# -- constants ----------------------------------------------------------------

NAMES = [
    *("START", "END", "TAG_NOSTREAM", "TAG_HIDDEN", "CONF", "TASKS", "PREVIOUS"),
    *("ERROR", "INTERRUPT", "RESUME", "RETURN", "NO_WRITES", "PUSH", "PULL", "INPUT"),
    *("NS_SEP", "NS_END", "NULL_TASK_ID", "OVERWRITE", "RESERVED", "SNAPSHOT_BUMPS"),
    *("CONFIG_KEY_CHECKPOINTER", "CONFIG_KEY_READ", "CONFIG_KEY_SEND"),
    *("CONFIG_KEY_RUNTIME", "CONFIG_KEY_TASK_ID", "CONFIG_KEY_THREAD_ID"),
    *("CONFIG_KEY_CHECKPOINT_NS", "CONFIG_KEY_NODE_FINISHED", "CACHE_NS_WRITES"),
]


@differential
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_constant_is_the_peers(name: str) -> None:
    theirs = pytest.importorskip("langgraph.constants")

    assert getattr(theirs, name) == getattr(constants, name)


def test_moved_names_are_found_with_a_warning() -> None:
    from towpath.types import Interrupt, Send

    with pytest.warns(LangGraphDeprecatedSinceV10, match=r"from towpath\.types import"):
        assert Send is constants.Send
    with pytest.warns(LangGraphDeprecatedSinceV10):
        assert Interrupt is constants.Interrupt
    with pytest.warns(LangGraphDeprecatedSinceV10):
        assert "__pregel_ns_writes" == constants.CACHE_NS_WRITES
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        constants.nope  # noqa: B018


def test_warning_tells_since_when_and_until() -> None:
    warning = LangGraphDeprecationWarning("Gone.", since=(0, 4))

    assert "Gone. Deprecated in LangGraph V0.4 to be removed in V1.0." == str(warning)
    assert issubclass(TowpathWarning, UserWarning)


# -- semantics ----------------------------------------------------------------


def test_presets_differ_in_what_is_documented() -> None:
    native, peer = semantics.NATIVE, semantics.LANGGRAPH

    same = {
        f.name
        for f in fields(native)
        if getattr(native, f.name) == getattr(peer, f.name)
    }
    assert {"inner_modes", "on_busy"} == same
    assert (1000, 10007) == (native.recursion_limit, peer.recursion_limit)


def test_default_is_native_until_it_is_set() -> None:
    assert semantics.NATIVE is semantics.default()
    former = semantics.set_default(semantics.LANGGRAPH)
    try:
        assert semantics.LANGGRAPH is semantics.default()
    finally:
        semantics.set_default(former)
    assert semantics.NATIVE is semantics.default()


def test_one_switch_can_be_set() -> None:
    lenient = replace(semantics.NATIVE, undeclared_keys="drop")

    assert ("drop", "error") == (lenient.undeclared_keys, lenient.unknown_nodes)


def test_configurable_enters_metadata_only_under_the_peers_preset() -> None:
    assert not semantics.NATIVE.stores("user", "u")
    stores = semantics.LANGGRAPH.stores
    kept = [stores("user", "u"), stores("n", 1)]
    left = [stores("thread_id", "t"), stores("__x", "y"), stores("obj", object())]

    assert ([True, True], [False, False, False]) == (kept, left)


# -- context, config, runtime ---------------------------------------------------


class Task:
    config = {"tags": ["t"]}
    runtime = Runtime(context="c")
    store = "store"
    writer = "writer"

    def ask(self, value: Any, response_schema: Any) -> Any: ...


GETTERS = [
    config.get_config,
    config.get_store,
    config.get_stream_writer,
    runtime.get_runtime,
]


@pytest.mark.parametrize("get", GETTERS, ids=lambda g: g.__name__)
def test_getters_outside_of_a_node_say_so(get: Any) -> None:
    with pytest.raises(OutsideNodeError, match=f"`{get.__name__}` was called outside"):
        get()
    with pytest.raises(RuntimeError):
        get()


def test_getters_read_the_running_task() -> None:
    token = current.set(Task())
    try:
        assert Task.config == config.get_config()
        assert ("store", "writer") == (config.get_store(), config.get_stream_writer())
        assert Task.runtime is runtime.get_runtime()
        assert Task.runtime is runtime.get_runtime(str)
        assert isinstance(ambient(), Task)
    finally:
        current.reset(token)


def test_control_keeps_the_last_reason() -> None:
    control = RunControl()
    before = (control.drain_requested, control.drain_reason)
    control.request_drain()
    control.request_drain("deploy")

    assert (False, None) == before
    assert (True, "deploy") == (control.drain_requested, control.drain_reason)
    assert (True, "deploy") == (
        Runtime(control=control).drain_requested,
        Runtime(control=control).drain_reason,
    )
    assert (False, None) == (Runtime().drain_requested, Runtime().drain_reason)


@differential
def test_runtimes_merge_as_the_peers() -> None:
    theirs = pytest.importorskip("langgraph.runtime")
    said: list[dict[str, Any]] = [
        {},
        {"context": 1},
        {"context": 0},
        {"context": {}, "store": 1},
        {"store": 0, "previous": 0},
        {"previous": 3},
        {"previous": None},
    ]

    def merged(module: Any, one: dict[str, Any], other: dict[str, Any]) -> Any:
        made = module.Runtime(**one).merge(module.Runtime(**other))
        return made.context, made.store, made.previous

    for one in said:
        for other in said:
            assert merged(theirs, one, other) == merged(runtime, one, other)


def test_merge_keeps_a_writer_and_a_heartbeat() -> None:
    def write(_: Any) -> None: ...

    def beat() -> None: ...

    said = Runtime(stream_writer=write, heartbeat=beat)
    merged = [said.merge(Runtime()), Runtime().merge(said)]

    assert [write, write] == [m.stream_writer for m in merged]
    assert [beat, beat] == [m.heartbeat for m in merged]
    assert (None, None) == (Runtime().stream_writer(1), Runtime().heartbeat())


def test_execution_info_is_patched_on_a_copy() -> None:
    info = ExecutionInfo("c", "ns", "t")
    first = Runtime(execution_info=info)

    second = first.patch_execution_info(node_attempt=2)

    assert (1, 2) == (info.node_attempt, second.execution_info.node_attempt)
    with pytest.raises(RuntimeError, match="before it has been set"):
        Runtime().patch_execution_info(node_attempt=2)
    assert 5 == first.override(context=5).context
    assert Runtime(context=1) == Runtime[int](context=1)


# -- managed ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "stop", "last", "remaining"),
    [(0, 1, True, 1), (3, 5, False, 2), (4, 5, True, 1), (5, 5, False, 0)],
)
def test_steps_left(step: int, stop: int, last: bool, remaining: int) -> None:
    place = SimpleNamespace(step=step, stop=stop)

    assert last is managed.IsLastStepManager.get(place)
    assert remaining == managed.RemainingStepsManager.get(place)


def test_managed_values_are_recognised() -> None:
    found = [
        is_managed_value(value)
        for value in (managed.IsLastStepManager, IsLastStep, int, 5)
    ]

    assert [True, False, False, False] == found
    assert (bool, int) == (
        typing.get_args(IsLastStep)[0],
        typing.get_args(RemainingSteps)[0],
    )


# -- callbacks ----------------------------------------------------------------

RESUMED = callbacks.GraphResumeEvent(None, "pending", "c", ())
STOPPED = callbacks.GraphInterruptEvent(None, "pending", "c", (), ())


class Heard(list[Any]):
    """Handlers of every sort that note what they hear."""

    def handlers(self) -> list[Any]:
        heard = self

        class Sync(callbacks.GraphCallbackHandler):
            def on_interrupt(self, event: Any) -> None:
                heard.append(("sync", event))

        class Async(callbacks.GraphCallbackHandler):
            async def on_interrupt(self, event: Any) -> None:
                heard.append(("async", event))

        return [Sync(), Async(), object()]


def test_listeners_hear_of_the_graph_in_a_blocking_run() -> None:
    heard = Heard()
    manager = callbacks.get_sync_graph_callback_manager_for_config(
        {"callbacks": heard.handlers()}
    )

    manager.on_interrupt(STOPPED)
    manager.on_resume(RESUMED)

    assert [("sync", STOPPED), ("async", STOPPED)] == heard


async def test_listeners_hear_of_the_graph_in_an_async_run() -> None:
    heard = Heard()
    manager = callbacks.get_async_graph_callback_manager_for_config(
        {"callbacks": SimpleNamespace(handlers=heard.handlers())}
    )

    await manager.on_interrupt(STOPPED)
    await manager.on_resume(RESUMED)

    assert [("sync", STOPPED), ("async", STOPPED)] == heard


async def test_blocking_run_inside_a_loop_waits_for_async_listeners() -> None:
    heard = Heard()
    manager = callbacks.get_sync_graph_callback_manager_for_config(
        {"callbacks": heard.handlers()}
    )

    manager.on_interrupt(STOPPED)

    assert 2 == len(heard)


def failing(raises: bool) -> Any:
    class Failing(callbacks.GraphCallbackHandler):
        raise_error = raises

        def on_resume(self, event: Any) -> None:
            raise ValueError("broken")

        async def on_interrupt(self, event: Any) -> None:
            raise ValueError("broken")

    return Failing()


def test_failing_listener_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    manager = callbacks.get_sync_graph_callback_manager_for_config(
        {"callbacks": failing(False)}
    )
    with caplog.at_level(logging.WARNING):
        manager.on_resume(RESUMED)
        manager.on_interrupt(STOPPED)

    assert 2 == caplog.text.count("Error in callback of Failing")


def test_failing_listener_that_says_so_ends_the_run() -> None:
    manager = callbacks.get_sync_graph_callback_manager_for_config(
        {"callbacks": [failing(True)]}
    )
    with pytest.raises(ValueError, match="broken"):
        manager.on_resume(RESUMED)


def test_no_callbacks_no_listeners() -> None:
    get = callbacks.get_sync_graph_callback_manager_for_config

    assert [] == get({}).handlers == get({"callbacks": None}).handlers
    with pytest.raises(AttributeError):
        callbacks.nope  # noqa: B018
    assert callbacks.GraphCallbackHandler is callbacks.GraphCallbackHandler


def test_handler_is_a_langchain_handler() -> None:
    base = pytest.importorskip("langchain_core.callbacks.base")

    assert issubclass(callbacks.GraphCallbackHandler, base.BaseCallbackHandler)


# -- the rest -----------------------------------------------------------------


def test_parameters_are_padded_by_their_defaults() -> None:
    pad = towpath_typing.pad

    assert (dict, None, dict, dict) == pad(dict)
    assert (dict, int, dict, dict) == pad((dict, int))
    assert (dict, int, list, str) == pad((dict, int, list, str))


def test_version_is_one() -> None:
    assert 3 == len(__version__.split("."))


def test_words_import_nothing_of_third_parties() -> None:
    code = (
        "import sys; before = set(sys.modules); "
        "import towpath.types, towpath.channels, towpath.schema, towpath.runtime, "
        "towpath.config, towpath.callbacks, towpath.semantics, towpath.managed; "
        "roots = {m.partition('.')[0] for m in set(sys.modules) - before}; "
        "print(sorted(roots - set(sys.stdlib_module_names) - {'towpath'})); "
        "print('asyncio' in sys.modules)"
    )
    path = typing.cast("str", constants.__file__).rsplit("towpath", 1)[0]
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": path},
    )

    assert ["[]", "False"] == found.stdout.split("\n")[:2]
