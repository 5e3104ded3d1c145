"""A run read from a blocking program: events, projections, and their ends."""

from __future__ import annotations

from tests.programs.both import on_both, on_drop_in, thread

from towpath.testing.api import Api

from .programs import Count, add, asking, chain, fail, read, tried


def on_three(lib: Api):
    return chain(lib, add, chain(lib, add, add), add)


def events(graph, given=None, config=None, **options):
    return graph.stream_events(given or {"n": 1}, config, version="v3", **options)


@on_both
def test_every_event_is_told_once_with_its_number(lib: Api) -> object:
    return read(events(on_three(lib)))


@on_both
def test_projections_show_the_own_namespace_only(lib: Api) -> object:
    names = ("values", "messages", "lifecycle", "subgraphs")
    runs = {name: events(on_three(lib)) for name in names}
    found = {name: read(getattr(run, name)) for name, run in runs.items()}
    return {**found, "subgraphs": [each.path for each in found["subgraphs"]]}


@on_both
def test_modes_that_are_asked_for_become_projections(lib: Api) -> object:
    kinds = [
        lib.TasksTransformer, lib.UpdatesTransformer, lib.CustomTransformer,
        lib.DebugTransformer, lib.CheckpointsTransformer,
    ]  # fmt: skip

    def writing(state: Count):
        lib.get_stream_writer()({"said": state["n"]})
        return {"n": state["n"] + 1}

    found = {}
    for name in ("tasks", "updates", "custom", "debug", "checkpoints"):
        graph = chain(lib, writing, add, checkpointer=lib.InMemorySaver())
        run = events(graph, config=thread(name), transformers=kinds)
        found[name] = read(getattr(run, name))
    return found


@on_both
def test_several_projections_come_in_the_order_of_arrival(lib: Api) -> object:
    run = events(on_three(lib), transformers=[lib.UpdatesTransformer])
    return list(run.interleave("updates", "values", "lifecycle"))


@on_both
def test_output_is_the_last_state_whoever_else_reads(lib: Api) -> object:
    run = events(on_three(lib))
    first = next(iter(run.values))
    return first, run.output, run.interrupted, run.interrupts, read(run)


@on_both
def test_what_a_run_asks_is_told_and_can_be_answered(lib: Api) -> object:
    graph = chain(lib, add, asking(lib), checkpointer=lib.InMemorySaver())
    asked = events(graph, config=thread())
    found = [read(asked.values), asked.interrupted, asked.interrupts, asked.output]
    answered = events(graph, lib.Command(resume=7), thread())
    return [*found, answered.output, answered.interrupted, answered.interrupts]


@on_both
def test_every_reader_gets_what_a_node_raised(lib: Api) -> object:
    graph = chain(lib, add, chain(lib, fail))
    run = events(graph)
    ways = (
        lambda: run.output,
        lambda: run.interrupted,
        lambda: run.interrupts,
        lambda: list(run.values),
    )
    return [read(run), *(tried(way) for way in ways)]


@on_both
def test_nothing_runs_before_it_is_read_nor_after_it_is_closed(lib: Api) -> object:
    calls = []

    def note(state: Count):
        calls.append(state["n"])
        return {"n": state["n"] + 1}

    run = events(chain(lib, note, note, note))
    seen = [list(calls)]
    reader = iter(run)
    for _ in range(2):
        next(reader)
        seen.append(list(calls))
    run.abort()
    return [*seen, list(reader), run.output, calls]


@on_both
def test_leaving_a_block_closes_the_run(lib: Api) -> object:
    calls = []

    def note(state: Count):
        calls.append(state["n"])
        return {"n": state["n"] + 1}

    with events(chain(lib, note, note)) as run:
        first = next(iter(run.values))
    return first, calls, run.output


@on_both
def test_a_channel_has_one_reader_or_as_many_as_were_asked_for(lib: Api) -> object:
    run = events(chain(lib, add))
    left, right = run.values.tee(2)
    again = tried(lambda: iter(run.values)), tried(lambda: run.values.tee())
    twice = tried(lambda: list(run.interleave("values")))
    return list(left), list(right), again, twice


@on_both
def test_names_that_are_no_projection_are_refused(lib: Api) -> object:
    run = events(chain(lib, add))
    return [
        tried(lambda: run.nothing),
        tried(lambda: run.updates),
        tried(lambda: list(run.interleave("nothing"))),
        sorted(run.extensions),
    ]


@on_both
def test_what_the_transformers_decide_cannot_be_given(lib: Api) -> object:
    graph = chain(lib, add)
    return [
        tried(lambda: events(graph, stream_mode="values")),
        tried(lambda: events(graph, subgraphs=True)),
        tried(lambda: graph.stream_events({"n": 1})),
        tried(lambda: graph.stream_events({"n": 1}, version="v9")),
    ]


@on_both
def test_options_of_stream_are_taken(lib: Api) -> object:
    graph = chain(lib, add, add, checkpointer=lib.InMemorySaver())
    run = events(graph, config=thread(), interrupt_before=["n1"], durability="sync")
    return read(run), run.interrupted, run.output, graph.get_state(thread()).next


def test_an_error_of_a_property_is_not_taken_for_a_missing_one():
    from towpath.testing.api import load

    def broken(state: Count):
        raise AttributeError("of the node")

    run = events(chain(load("towpath"), broken))
    try:
        found = run.output
    except AttributeError as error:
        found = str(error)
    assert found == "of the node"


@on_drop_in
def test_a_model_is_told_as_its_class(lib: Api) -> object:
    from pydantic import BaseModel

    class Model(BaseModel):
        n: int = 0

    graph = lib.StateGraph(Model)
    graph.add_node("a", lambda state: {"n": state.n + 1})
    graph.add_edge(lib.START, "a")
    run = events(graph.compile())
    return list(run.values), run.output
