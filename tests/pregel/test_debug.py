"""The helpers of `pregel.debug` tell tasks and checkpoints as the peer's do."""

from __future__ import annotations

from collections import deque
from importlib import import_module

from tests.programs.both import on_both

from towpath.testing.api import Api

HIDDEN = "langsmith:hidden"
CONFIG = {
    "configurable": {
        "thread_id": "1",
        "checkpoint_id": "c",
        "checkpoint_ns": "",
        "checkpoint_map": {"": "c"},
        "__pregel_own": 1,
    },
    "metadata": {"a": 1, "thread_id": "1"},
    "tags": ["t"],
}


def parts(lib: Api):
    debug = import_module(f"{lib.package}.pregel.debug")
    types = import_module(f"{lib.package}.types")

    def task(id: str, name: str = "n", **given):
        whole = {
            "input": {"x": 1}, "proc": None, "writes": deque(), "config": {},
            "triggers": ["a"], "retry_policy": [], "cache_key": None,
            "path": ("__pregel_pull", name), **given,
        }  # fmt: skip
        return types.PregelExecutableTask(name=name, id=id, **whole)

    return debug, types, task


@on_both
def test_tasks_that_start_are_told(lib: Api) -> object:
    debug, _, task = parts(lib)
    configs = [
        {},
        {"tags": [HIDDEN]},
        {"tags": ["own", "seq:step:1"], "metadata": {"k": 1, "langgraph_step": 3}},
        {"tags": ["seq:step:1"], "metadata": {"thread_id": 1}},
    ]
    tasks = [task(f"t{n}", config=config) for n, config in enumerate(configs)]
    return list(debug.map_debug_tasks(tasks))


def endings(types):
    question = types.Interrupt("q", "i1")
    return [
        [],
        [("x", 1), ("y", 2), ("z", 3), ("x", 4), ("x", 5), ("branch:to:b", None)],
        [("__error__", "boom"), ("__error__", "again"), ("__interrupt__", (question,))],
        [("__interrupt__", [question, types.Interrupt("r", "i2")]), ("__return__", 5)],
        [("__interrupt__", (question,)), ("__resume__", 1)],
        [("__interrupt__", (question,)), ("x", 3)],
        [("__no_writes__", None)],
        [("__return__", None), ("x", 3)],
        [("__error__", "e"), ("x", 1)],
        [("__error_source_node__", "n")],
        [("__interrupt__", question)],
    ]


@on_both
def test_tasks_that_end_are_told(lib: Api) -> object:
    debug, types, task = parts(lib)
    return [
        list(debug.map_debug_task_results((task("t"), writes), keys))
        for writes in endings(types)
        for keys in ("x", ["x", "y"])
    ]


@on_both
def test_tasks_are_shown_with_what_they_wrote(lib: Api) -> object:
    debug, types, task = parts(lib)
    plain = types.PregelTask("t", "n", ("p",), ValueError("old"), (), "old", "old")
    return [
        debug.tasks_w_writes([each], pending, states, keys, live=live)
        for each in (plain, task("t"))
        for writes in endings(types)
        for keys in ("x", ["x", "y"])
        for live in (False, True)
        for pending in ([("t", *write) for write in writes], [("u", "x", 1)], None)
        for states in (None, {"t": {"configurable": {"a": 1}}})
    ]


@on_both
def test_checkpoints_are_told(lib: Api) -> object:
    debug, types, task = parts(lib)
    channels = import_module(f"{lib.package}.channels")
    full, empty = channels.LastValue(int), channels.LastValue(int)
    full.key, empty.key = "x", "y"
    full.update([1])
    tasks = [task("t"), task("u", "m", subgraphs=[object()])]
    below = {**CONFIG, "configurable": {"thread_id": "1", "checkpoint_ns": "a:1"}}
    return [
        list(
            debug.map_debug_checkpoint(
                config, {"x": full, "y": empty}, shown, {"step": 1}, tasks,
                [("t", *write) for write in writes], parent, keys,
            )
        )
        for config, parent in ((CONFIG, None), (below, CONFIG))
        for writes in endings(types)
        for shown, keys in ((["x", "y"], ["x"]), ("x", "x"), ("y", ["y"]))
    ]  # fmt: skip


@on_both
def test_texts_and_keys(lib: Api) -> object:
    debug, _, _ = parts(lib)
    return [
        debug.rm_pregel_keys(CONFIG),
        debug.rm_pregel_keys(None),
        debug.get_bolded_text("a"),
        debug.is_multiple_channel_write({"$writes": [1]}),
        debug.is_multiple_channel_write([1]),
        debug.map_task_result_writes([("a", 1), ("a", 2), ("a", 3), ("b", 1)]),
    ]
