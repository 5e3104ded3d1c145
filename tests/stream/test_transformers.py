"""Transformers of one's own, and what the mux does with them."""

from __future__ import annotations

from tests.programs.both import on_both

from towpath.testing.api import Api, load

from .programs import add, chain, fail, read, told, tried


def run_of(graph, *kinds):
    return graph.stream_events({"n": 1}, version="v3", transformers=kinds)


def kind(lib: Api, **members):
    """Return a class of transformers that does nothing but what is given."""
    default = {"init": lambda self: {}, "process": lambda self, event: True}
    return type("Kind", (lib.StreamTransformer,), {**default, **members})


def event(mode, data, *ns, **more):
    params = {"namespace": list(ns), "timestamp": 1, "data": data, **more}
    return {"type": "event", "method": mode, "params": params}


def note(notes, name, **members):
    """Return what makes a transformer that notes what it is told."""

    def process(self, event):
        notes.append((name, self.scope, event["method"], event["params"]["namespace"]))
        return True

    return {
        "process": process,
        "finalize": lambda self: notes.append((name, "finalize", self.scope)),
        "fail": lambda self, err: notes.append((name, "fail", repr(err))),
        **members,
    }


@on_both
def test_a_transformer_sees_its_modes_in_each_scope(lib: Api) -> object:
    notes = []
    modes = ("updates", "tasks", "values", "custom", "debug")
    spy = kind(lib, **note(notes, "spy", required_stream_modes=modes))
    events = read(run_of(chain(lib, chain(lib, add), add), spy))
    return notes, [each["method"] for each in events]


@on_both
def test_named_channels_are_events_and_unnamed_ones_are_not(lib: Api) -> object:
    def init(self):
        self.named, self.plain = lib.StreamChannel("mine"), lib.StreamChannel()
        return {"named": self.named, "plain": self.plain, "count": 42}

    def process(self, event):
        self.named.push(event["method"])
        self.plain.push(event["method"])
        return True

    spy = kind(lib, init=init, process=process, finalize=lambda s: s.named.push("end"))
    graph = chain(lib, add, transformers=[spy])
    run = graph.stream_events({"n": 1}, version="v3")
    merged = list(run.interleave("values", "named", "plain"))
    other = graph.stream_events({"n": 1}, version="v3")
    return merged, read(other), other.extensions["count"], tried(lambda: other.count)


@on_both
def test_a_transformer_hides_events_but_not_from_projections(lib: Api) -> object:
    hiding = kind(lib, process=lambda self, event: False)
    first = kind(lib, process=lambda self, event: None, before_builtins=True)
    runs = [run_of(chain(lib, add), each) for each in (hiding, first)]
    return [(read(run), run.output) for run in runs]


@on_both
def test_those_that_come_first_may_change_what_others_see(lib: Api) -> object:
    def tenfold(self, event):
        if event["method"] == "values":
            event["params"]["data"] = {"n": event["params"]["data"]["n"] * 10}
        return True

    early = kind(lib, process=tenfold, before_builtins=True)
    late = kind(lib, process=tenfold)
    return [list(run_of(chain(lib, add), each).values) for each in (early, late)]


@on_both
def test_ends_are_told_in_order(lib: Api) -> object:
    notes = []
    kinds = [
        kind(lib, **note(notes, "a")),
        kind(lib, **note(notes, "b", before_builtins=True)),
    ]
    read(run_of(chain(lib, add), *kinds))
    read(run_of(chain(lib, add, fail), *kinds))
    return notes


@on_both
def test_an_error_of_a_transformer_ends_the_run(lib: Api) -> object:
    def broken(self, event):
        raise KeyError("of the transformer")

    def end(self):
        raise ZeroDivisionError

    found = []
    for members in ({"process": broken}, {"finalize": end}):
        run = run_of(chain(lib, add), kind(lib, **members))
        found.append((read(run)[-1], tried(lambda run=run: run.output)))
    return found


@on_both
def test_what_cannot_serve_a_run_is_refused_at_once(lib: Api) -> object:
    async def aprocess(self, event):
        return True

    graph = chain(lib, add, transformers=[kind(lib, init=lambda self: {"own": 1})])
    bad = [
        kind(lib)(),
        kind(lib, requires_async=True),
        kind(lib, aprocess=aprocess),
        kind(lib, init=lambda self: {"values": 1}),
        kind(lib, init=lambda self: {"own": 1}),
        kind(lib, init=lambda self: None),
        lib.ValuesTransformer,
    ]
    good = [kind(lib, aprocess=aprocess, supports_sync=True), kind(lib)]
    return [
        *(tried(lambda each=each: run_of(graph, each)) for each in bad),
        *(run_of(graph, each).output for each in good),
    ]


@on_both
def test_a_mux_alone_serves_its_transformers(lib: Api) -> object:
    kinds = [lib.ValuesTransformer, lib.LifecycleTransformer, lib.SubgraphTransformer]
    mux = lib.StreamMux(factories=kinds)
    log, values = iter(mux._events), iter(mux.extensions["values"])
    handles = iter(mux.extensions["subgraphs"])
    start = {"id": "t1", "name": "kid", "input": {}, "triggers": []}
    result = {"id": "t1", "name": "kid", "error": None, "result": {}, "interrupts": []}
    for each in (
        event("values", {"a": 1}),
        event("tasks", start),
        event("tasks", {**start, "id": "c1"}, "kid:t1"),
        event("tasks", {**start, "id": "c2"}, "other:t9"),
        event("tasks", {**start, "id": "d1"}, "kid:t1", "deep:d"),
        event("custom", "c"),
        event("values", {"b": 1}, "kid:t1", interrupts=("asked",)),
        event("tasks", result),
        event("values", {"b": 2}, "kid:t1"),
    ):
        mux.push(each)
    mux.close()
    found = [(h.path, h.status, h.graph_name, h.output, h.interrupts) for h in handles]
    closed = tried(lambda: mux.push(event("values", 1)))
    return [told(each) for each in log], list(values), found, closed


@on_both
def test_a_subgraph_for_a_tool_call_says_which(lib: Api) -> object:
    mux = lib.StreamMux(factories=[lib.LifecycleTransformer])
    log = iter(mux._events)
    call = {"name": "f", "args": {}, "id": "call_1", "type": "tool_call"}
    named = {"metadata": {"lc_agent_name": "sub"}}
    for number, given in enumerate(([call], {"tool_call": call}, call, {}, ["x"])):
        task = {"id": f"t{number}", "name": "tools", "input": given, "triggers": []}
        mux.push(event("tasks", task))
        inner = {"id": "c", "name": "x", "input": {}, "triggers": []}
        mux.push(event("tasks", {**inner, **named}, f"tools:t{number}"))
        mux.push(event("tasks", inner, f"tools:t{number}", "plain"))
    mux.close()
    return [told(each) for each in log]


@on_both
def test_how_a_subgraph_ended_is_read_from_the_result_or_the_error(lib: Api) -> object:
    found = []
    start = {"id": "c", "name": "x", "input": {}, "triggers": []}
    result = {"id": "t", "name": "k", "error": None, "result": {}, "interrupts": []}
    results = [
        {**result, "interrupts": [{"value": 1}]},
        {**result, "error": ValueError("broke")},
        {**result, "error": "broke", "interrupts": [{"value": 1}]},
    ]
    errors = [ValueError("dead"), lib.GraphInterrupt(()), lib.GraphDrained()]
    for end in [*results, *errors]:
        mux = lib.StreamMux(factories=[lib.LifecycleTransformer])
        log = iter(mux._events)
        mux.push(event("tasks", start, "k:t"))
        mux.fail(end) if isinstance(end, Exception) else mux.push(event("tasks", end))
        found.append(read(log)[1])
    return found


@on_both
def test_a_channel_keeps_its_rules(lib: Api) -> object:
    found = [
        tried(lambda: list(lib.StreamChannel())),
        tried(lambda: lib.StreamChannel(maxlen=0)),
    ]
    channel = lib.StreamChannel(maxlen=2)
    channel._bind(is_async=False)
    found.append(tried(lambda: channel._bind(is_async=True)))
    found.append(tried(lambda: aiter(channel)))
    channel.push("before anybody reads")
    reader = iter(channel)
    for number in range(5):
        channel.push(number)
    channel.close()
    channel.close()
    found += [tried(lambda: channel.push(9)), list(reader)]
    pulled = lib.StreamChannel()
    pulled._bind(is_async=False)
    source = iter(range(3))

    def more():
        item = next(source, None)
        if item is not None:
            pulled.push(item)
        return item is not None

    pulled._request_more = more
    return [*found, list(pulled)]


def test_every_reader_of_a_fan_out_gets_the_error():
    channel = load("towpath").StreamChannel()
    channel._bind(is_async=False)
    readers = channel.tee(2)
    channel.push(1)
    channel.fail(ValueError("broke"))
    assert [[1, "broke"]] * 2 == [
        [str(each) if isinstance(each, Exception) else each for each in read(reader)]
        for reader in readers
    ]


def test_what_a_transformer_raises_about_an_error_becomes_a_note():
    lib = load("towpath")

    def again(self, err):
        raise KeyError("again")

    run = run_of(chain(lib, fail), kind(lib, fail=again))
    error = read(run)[-1]
    assert "bad node" == str(error)
    assert any("KeyError('again')" in note for note in error.__notes__)


def test_a_reader_that_lags_keeps_what_it_lags_behind_and_nothing_else():
    lib = load("towpath")
    run = run_of(chain(lib, *[add] * 50))
    values = iter(run.values)
    next(values)
    assert 51 == run.output["n"]
    assert 50 == len(run.values._items)
    assert 0 == len(run._mux._events._items)
    assert 50 == len(list(values))
    assert 0 == len(run.values._items)
