"""`import langgraph` gives Towpath, whatever else is there under that name."""

from __future__ import annotations

import json

import pytest

GRAPH = """
from typing import TypedDict
from langgraph.graph import END, START, StateGraph

class State(TypedDict):
    text: str

builder = StateGraph(State)
builder.add_node("write", lambda state: {"text": state["text"] + "!", **more})
builder.add_edge(START, "write")
"""
REDIS = """
from langgraph.checkpoint.base import BaseCheckpointSaver
from ..serde.jsonplus import JsonPlusSerializer
from . import detail

class RedisSaver(BaseCheckpointSaver):
    pass
"""


def test_a_module_is_one_object_under_both_names(programs):
    text = """
import importlib
for name in ("graph", "types", "checkpoint.base", "channels.binop", "errors"):
    one = importlib.import_module(f"langgraph.{name}")
    other = importlib.import_module(f"towpath.{name}")
    assert one is other, name
    assert one.__spec__.name == one.__name__ == f"towpath.{name}"
import langgraph.types, towpath.types
importlib.reload(importlib.import_module("langgraph.managed"))
"""
    programs.hooked(text)


def test_classes_and_errors_are_the_same_under_both_names(programs):
    text = """
import pickle
from langgraph.errors import GraphInterrupt, InvalidUpdateError
from langgraph.types import Command, Interrupt, Send
import towpath.errors, towpath.types
assert isinstance(Send("a", 1), towpath.types.Send)
try:
    raise towpath.errors.UndeclaredKeyError("x")
except InvalidUpdateError:
    pass
assert pickle.loads(pickle.dumps(Send("a", 1))) == Send("a", 1)
# As the peer pickles it.
assert pickle.loads(b"clanggraph.types\\nCommand\\n.") is towpath.types.Command
"""
    programs.hooked(text)


def test_it_works_without_the_peer(programs):
    text = """
more = {}
try:
    import langgraph_sdk
except ImportError:
    pass
else:
    raise AssertionError("something is installed after all")
"""
    text += GRAPH + "print(builder.compile().invoke({'text': 'hi'})['text'])"
    assert "hi!" == programs.hooked(text, alone=True)


@pytest.mark.parametrize("alone", [True, False])
def test_modules_of_other_distributions_meet_our_base_classes(programs, alone):
    programs.write("site/langgraph/checkpoint/redis/__init__.py", REDIS)
    programs.write("site/langgraph/checkpoint/redis/detail.py", "")
    programs.write("site/langgraph/middleware/redis/cache.py", "found = True")
    text = """
import towpath.checkpoint.base
from langgraph.checkpoint import redis
from langgraph.checkpoint.redis import RedisSaver
import langgraph.middleware.redis.cache
from langgraph import middleware
assert issubclass(RedisSaver, towpath.checkpoint.base.BaseCheckpointSaver)
assert redis.RedisSaver is RedisSaver
assert RedisSaver.__module__ == "langgraph.checkpoint.redis"
"""
    programs.hooked(text, alone=alone)


@pytest.mark.differential
def test_no_module_of_the_engine_that_was_replaced_is_ever_loaded(programs):
    text = """
import importlib, sys
from importlib.metadata import distribution
private = ("pregel._loop", "_internal._retry", "checkpoint.serde._msgpack")
for name in (*private, "nothing"):
    assert importlib.util.find_spec("langgraph") is not None
    try:
        importlib.import_module(f"langgraph.{name}")
    except ModuleNotFoundError as error:
        assert name.rpartition(".")[2] in str(error)
    else:
        raise AssertionError(name)
import langgraph.prebuilt, langgraph.graph, langgraph.store.memory
theirs = {
    str(file.locate())
    for name in ("langgraph", "langgraph-checkpoint")
    for file in distribution(name).files
}
loaded = [m for m in sys.modules.values() if getattr(m, "__file__", None) in theirs]
assert loaded == [], loaded
"""
    programs.hooked(text)


def test_what_came_before_the_hook_is_refused(programs):
    programs.write("site/langgraph/early.py", "")
    text = """
import langgraph.early
import towpath.compat
try:
    towpath.compat.install()
except ImportError as error:
    print(error)
assert not towpath.compat.installed()
"""
    file = programs.write("late.py", text)
    shown = programs.printed(str(file))
    assert shown.startswith("[TP-630] `langgraph`, `langgraph.early` came before")


def test_a_module_may_stay_with_its_distribution(programs):
    programs.write("site/langgraph/checkpoint/sqlite/__init__.py", "SqliteSaver = 7")
    text = "from langgraph.checkpoint.sqlite import SqliteSaver\nprint(SqliteSaver)"
    assert "towpath" in programs.hooked(text)
    theirs = ("--theirs", "langgraph.checkpoint.sqlite")
    assert "7" == programs.hooked(text, *theirs)


def test_installing_again_adds_to_what_stays_unless_it_is_too_late(programs):
    programs.write("site/langgraph/cache/memory.py", "mine = True")
    text = """
import towpath.compat
from langgraph.checkpoint.memory import InMemorySaver
towpath.compat.install(theirs=["langgraph.cache.memory"])
from langgraph.cache.memory import mine
try:
    towpath.compat.install(theirs=["langgraph.checkpoint.memory"])
except towpath.compat.ImportOrderError:
    print("refused")
"""
    assert "refused" == programs.hooked(text)


def test_graphs_mean_what_they_mean_to_the_peer_unless_they_say_otherwise(programs):
    text = "more = {'oops': 1}\n" + GRAPH
    text += """
import warnings
warnings.simplefilter("ignore")
from towpath.semantics import NATIVE
from towpath.errors import UndeclaredKeyError
assert builder.compile().invoke({"text": "hi"}) == {"text": "hi!"}
try:
    builder.compile(semantics=NATIVE).invoke({"text": "hi"})
except UndeclaredKeyError:
    print("native")
"""
    assert "native" == programs.hooked(text)


def test_threads_may_import_at_once(programs):
    text = """
import importlib, sys, threading
failed = []

def load(name):
    try:
        importlib.import_module(f"langgraph.{name}")
    except BaseException as error:
        failed.append((name, error))

sys.setswitchinterval(1e-5)
names = ["graph", "types", "checkpoint.sqlite.aio", "store.memory", "pregel.main"]
threads = [threading.Thread(target=load, args=[name]) for name in names * 4]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""
    assert "[]" == programs.hooked(text)


def test_the_version_is_one_that_others_accept(programs):
    text = """
from langgraph.version import __version__
assert tuple(int(part) for part in __version__.split(".")) >= (1, 2)
from towpath.version import __version__ as own
assert own != __version__
"""
    programs.hooked(text)


def test_settings_of_the_peers_loggers_hold_for_ours(programs):
    text = """
import logging
logging.getLogger("langgraph").setLevel(logging.CRITICAL)
assert not logging.getLogger("towpath.callbacks").isEnabledFor(logging.ERROR)
"""
    programs.hooked(text)


NAMES = """
import importlib, inspect, json, pkgutil, sys, warnings
warnings.simplefilter("ignore")
import langgraph
found = {}
for module in pkgutil.walk_packages(langgraph.__path__, "langgraph."):
    if any(part.startswith("_") for part in module.name.split(".")):
        continue
    loaded = importlib.import_module(module.name)
    own = getattr(loaded, "__all__", None) or [
        name for name, value in vars(loaded).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.name
    ]
    found[module.name] = sorted(own)
print(json.dumps(found))
"""
MISSING = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
lacks = []
for module, names in json.load(open(sys.argv[1])).items():
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError:
        lacks.append(module)
        continue
    lacks.extend(f"{module}.{name}" for name in names if not hasattr(loaded, name))
print(json.dumps(lacks))
"""
PRIVATE = {
    "langgraph._internal._config": "ensure_config patch_config patch_configurable",
    "langgraph._internal._constants": (
        "CACHE_NS_WRITES CONF CONFIG_KEY_CACHE CONFIG_KEY_CALL "
        "CONFIG_KEY_CHECKPOINTER "
        "CONFIG_KEY_CHECKPOINT_ID CONFIG_KEY_CHECKPOINT_MAP CONFIG_KEY_CHECKPOINT_NS "
        "CONFIG_KEY_DURABILITY CONFIG_KEY_READ CONFIG_KEY_READ_STATE "
        "CONFIG_KEY_RESUME_MAP CONFIG_KEY_RESUMING CONFIG_KEY_RUNNER_SUBMIT "
        "CONFIG_KEY_RUNTIME CONFIG_KEY_SCRATCHPAD CONFIG_KEY_SEND CONFIG_KEY_STREAM "
        "CONFIG_KEY_TASK_ID CONFIG_KEY_THREAD_ID NS_SEP PULL PUSH TASKS"
    ),
    "langgraph._internal._runnable": "RunnableCallable RunnableLike",
    "langgraph._internal._scratchpad": "PregelScratchpad",
    "langgraph._internal._typing": "DeprecatedKwargs MISSING",
    "langgraph.checkpoint.serde.jsonplus": (
        "_msgpack_ext_hook_to_json EXT_DELTA_SNAPSHOT JsonPlusSerializer"
    ),
    "langgraph.checkpoint.serde.types": "_DeltaSnapshot",
    "langgraph.constants": "Send Interrupt CONFIG_KEY_CHECKPOINTER",
    "langgraph.pregel._algo": "PregelTaskWrites _proc_input _scratchpad local_read",
    "langgraph.pregel._call": "identifier",
    "langgraph.pregel._read": "PregelNode",
    "langgraph.pregel._tools": "_tool_call_writer",
    "langgraph.store.base": "_ensure_ttl",
    "langgraph.stream._mux": "StreamMux TransformerFactory",
    "langgraph.stream._types": "ProtocolEvent StreamTransformer",
    "langgraph.stream.run_stream": "SubgraphRunStream AsyncSubgraphRunStream",
    "langgraph.stream.stream_channel": "StreamChannel",
    "langgraph.stream.transformers": "_TasksLifecycleBase SubgraphStatus",
    "langgraph.utils.config": "ensure_config get_config get_store patch_configurable",
    "langgraph.utils.runnable": "RunnableCallable",
    "langgraph.version": "__version__",
}


@pytest.mark.differential
@pytest.mark.slow
def test_every_public_name_of_the_peer_is_there(programs):
    names = programs.printed(str(programs.write("names.py", NAMES)))
    told = programs.write("names.json", names)
    file = programs.write("missing.py", MISSING)
    missing = programs.printed("-m", "towpath.compat", str(file), str(told))
    assert len(json.loads(names)) > 40
    assert [] == json.loads(missing)


def test_private_names_that_other_packages_import_are_there(programs):
    wanted = {module: names.split() for module, names in PRIVATE.items()}
    told = programs.write("names.json", json.dumps(wanted))
    file = programs.write("missing.py", MISSING)
    missing = programs.printed("-m", "towpath.compat", str(file), str(told))
    assert [] == json.loads(missing)
